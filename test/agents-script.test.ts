import { expect, test } from 'vitest';
import { hasScript, nextAction, parseScript } from '../agents/models/script.mjs';

const usage = { in: 100, out: 10, read: 0, write: 0, reason: 0 };
const act = (prompt: string, answers = 0, failures = new Map<string, number>()) =>
  nextAction({ prompt, answers }, failures);

test('fake model: a prompt without steps is answered with ok', () => {
  expect(hasScript('do it')).toBe(false);
  expect(act('do it')).toMatchObject({ kind: 'say', text: 'ok', usage });
});

test('fake model: steps run in order, one answer each', () => {
  const prompt = '[[tool shell {"command":"ls"}]] [[wait 50]] [[say done]]';
  expect(act(prompt)).toMatchObject({ kind: 'tool', name: 'shell', input: { command: 'ls' } });
  expect(act(prompt, 1)).toMatchObject({ kind: 'say', text: 'done', waitMs: 50 });
  expect(act(prompt, 2)).toMatchObject({ kind: 'say', text: 'ok' });
});

test('fake model: a failing step fails as often as it says', () => {
  const failures = new Map<string, number>();
  const prompt = '[[fail 429 retry-after=30 times=2]] [[say made it]]';
  const kinds = [1, 2, 3].map(() => act(prompt, 0, failures));
  expect(kinds[0]).toMatchObject({ kind: 'fail', status: 429, headers: { 'retry-after': '30' } });
  expect(kinds.map(({ kind }) => kind)).toEqual(['fail', 'fail', 'say']);
  expect(act('[[fail 500]]').kind).toBe('fail');
});

test('fake model: token counts are chosen by the prompt', () => {
  const { usage: chosen } = parseScript('[[usage in=120 out=7 read=900]] [[say x]]');
  expect(chosen).toEqual({ ...usage, in: 120, out: 7, read: 900 });
});
