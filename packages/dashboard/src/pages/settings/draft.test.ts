import { expect, test } from 'vitest';
import { inputKind, whyFixed, withSetting, type ConfigEntry } from './draft.js';

const entry = (more: Partial<ConfigEntry>): ConfigEntry => ({
  key: 'tokens.warn',
  value: '200k',
  source: 'default',
  origin: null,
  secret: false,
  ...more,
});

test.each([
  ['switch', { default: true, value: false }],
  ['number', { default: 0, value: 3 }],
  ['choice', { default: 'auto', choices: ['auto', 'tmux'] }],
  ['list', { default: [], value: [{ tool: 'Read' }] }],
  ['text', { default: '200k', value: 150_000 }],
  ['text', { default: null, value: null }],
] as const)('inputKind: %s', (kind, more) => {
  expect(inputKind(entry(more as Partial<ConfigEntry>))).toBe(kind);
});

test('withSetting: a value as it is now is no change', () => {
  const draft = withSetting({}, entry({}), '150k');
  expect(draft).toEqual({ 'tokens.warn': '150k' });
  expect(withSetting(draft, entry({}), null)).toEqual({ 'tokens.warn': null });
  expect(withSetting(draft, entry({}), '200k')).toEqual({});
});

test('whyFixed: says what stops a change', () => {
  expect(whyFixed(entry({ editable: true }))).toBeUndefined();
  expect(whyFixed(entry({ source: 'flag', origin: '--tokens-warn' }))).toBe('set by --tokens-warn');
  expect(whyFixed(entry({ needs_restart: true }))).toBe('needs a restart');
  expect(whyFixed(entry({ needs_restart: false }))).toBe('the config file cannot be written');
});
