import type { Key } from 'ink';
import { expect, test, vi } from 'vitest';
import { stepOf, type Prompt } from './prompts.js';

const key = (pressed: Partial<Key> = {}) => pressed as Key;
const run = vi.fn(() => Promise.resolve('done'));

test('confirm: only y confirms', () => {
  const prompt: Prompt = { kind: 'confirm', label: 'Sure?', run };
  expect(stepOf(prompt, 'y', key())).toEqual({ prompt: undefined, run });
  for (const input of ['n', 'x', '']) {
    expect(stepOf(prompt, input, key())).toEqual({ prompt: undefined });
  }
  expect(stepOf(prompt, 'y', key({ escape: true })).run).toBeUndefined();
});

test('choice: a number that is no option changes nothing', async () => {
  const pick = vi.fn((at: number) => Promise.resolve(`picked ${at}`));
  const prompt: Prompt = { kind: 'choice', label: '', options: ['a', 'b'], pick };
  for (const input of ['0', '3', 'x', '']) expect(stepOf(prompt, input, key())).toEqual({ prompt });
  expect(await stepOf(prompt, '2', key()).run?.()).toBe('picked 1');
});

test('text: is edited, sent by Enter and cancelled by Escape', async () => {
  const submit = vi.fn((text: string) => Promise.resolve(`sent ${text}`));
  const prompt: Prompt = { kind: 'text', label: '', value: 'ye', submit };
  expect(stepOf(prompt, 's', key()).prompt).toMatchObject({ value: 'yes' });
  expect(stepOf(prompt, '', key({ backspace: true })).prompt).toMatchObject({ value: 'y' });
  expect(stepOf(prompt, 'a', key({ ctrl: true })).prompt).toBe(prompt);
  expect(await stepOf(prompt, '', key({ return: true })).run?.()).toBe('sent ye');
  expect(stepOf(prompt, '', key({ escape: true }))).toEqual({ prompt: undefined });
  // A busy machine reads several keys at once.
  expect(await stepOf(prompt, 's\r', key()).run?.()).toBe('sent yes');
  expect(stepOf(prompt, '\u007F\u007Fno', key()).prompt).toMatchObject({ value: 'no' });
  const empty = { ...prompt, value: ' ' };
  expect(stepOf(empty, '', key({ return: true }))).toEqual({ prompt: undefined });
});
