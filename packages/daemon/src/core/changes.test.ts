import { expect, test } from 'vitest';
import {
  firstSettings,
  newBackend,
  rowOf,
  cooldownEnd,
  reconcile,
  withCooldown,
  withDefault,
  withPreferences,
  type RegistryState,
} from './backend.js';

const found = (id: string, installed = true) => ({
  id,
  installed,
  binaryPath: installed ? `/bin/${id}` : '',
});

const state: RegistryState = {
  backends: ['claude', 'gemini', 'local'].map((id) => newBackend(found(id), 5)),
  settings: firstSettings,
};

const one = ({ backends }: RegistryState, id: string) => backends.find((each) => each.id === id)!;

test('a reconcile touches what was detected and leaves preferences and cooldowns', () => {
  let chosen = withPreferences(state, 'claude', { tier: 'free', enabled: false });
  chosen = withCooldown(withDefault(chosen, 'claude'), 'claude', 99);
  const next = reconcile(chosen, [found('claude', false), found('codex')], 10);
  expect(one(next, 'claude')).toEqual({
    ...one(chosen, 'claude'),
    installed: false,
    binary_path: '',
    detected_at: 10,
  });
  expect(one(next, 'codex')).toEqual(newBackend(found('codex'), 10));
  expect(one(next, 'gemini')).toBe(one(chosen, 'gemini'));
});

test('a default takes the place of every other', () => {
  const both = {
    ...state,
    backends: state.backends.map((each) => ({ ...each, default: true })),
  };
  const next = withDefault(both, 'gemini');
  expect(next.backends.filter((each) => each.default).map(({ id }) => id)).toEqual(['gemini']);
});

test('a cooldown grows and never shrinks, and local has none', () => {
  const limited = withCooldown(state, 'claude', 100);
  expect(one(limited, 'claude').limited_until).toBe(100);
  expect(one(withCooldown(limited, 'claude', 50), 'claude').limited_until).toBe(100);
  expect(one(withCooldown(limited, 'claude', 150), 'claude').limited_until).toBe(150);
  expect(one(withCooldown(state, 'local', 100), 'local').limited_until).toBe(0);
});

test('a cooldown ends after the wait, or at the reset when that is later', () => {
  expect(cooldownEnd(1_000, 500, undefined)).toBe(1_500);
  expect(cooldownEnd(1_000, 500, 1_200)).toBe(1_500);
  expect(cooldownEnd(1_000, 500, 9_000)).toBe(9_000);
});

test('a row shows a cooldown only while it lasts', () => {
  const limited = one(withCooldown(state, 'claude', 1_000), 'claude');
  expect(rowOf(limited, 999).limited_until).toBe('1970-01-01T00:00:01.000Z');
  expect(rowOf(limited, 1_000).limited_until).toBe(null);
  expect(rowOf({ ...one(state, 'local'), limited_until: 9_999 }, 0).limited_until).toBe(null);
});
