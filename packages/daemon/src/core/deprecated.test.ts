import { expect, test } from 'vitest';
import {
  firstSettings,
  newBackend,
  withPreferences,
  importDeprecated,
  type RegistryState,
} from './backend.js';

const nothing = { free: [], subscription: [], pay_per_use: [], allow_pay_per_use: undefined };

const state: RegistryState = {
  backends: ['claude', 'codex', 'gemini', 'local'].map((id) =>
    newBackend({ id, installed: true, binaryPath: '' }, 0),
  ),
  settings: firstSettings,
};

const tiersOf = ({ backends }: RegistryState) =>
  Object.fromEntries(backends.map(({ id, tier }) => [id, tier]));

test('the lists become tiers and the switch becomes a setting', () => {
  const { state: next, unknown } = importDeprecated(state, {
    free: ['gemini'],
    subscription: ['claude'],
    pay_per_use: ['codex'],
    allow_pay_per_use: true,
  });
  expect(tiersOf(next)).toEqual({
    claude: 'subscription',
    codex: 'pay_per_use',
    gemini: 'free',
    local: 'local',
  });
  expect(next.settings.allow_paid_autopilot).toBe(true);
  expect(unknown).toEqual([]);
});

test('an id in several lists costs money', () => {
  const both = { ...nothing, free: ['claude', 'gemini'], pay_per_use: ['claude'] };
  expect(tiersOf(importDeprecated(state, both).state)).toMatchObject({
    claude: 'pay_per_use',
    gemini: 'free',
  });
});

test('a tier that somebody chose stays', () => {
  const chosen = withPreferences(state, 'claude', { tier: 'subscription' });
  const { state: next } = importDeprecated(chosen, { ...nothing, free: ['claude'] });
  expect(tiersOf(next)['claude']).toBe('subscription');
});

test('deprecated import: unknown ids and local are reported and change nothing', () => {
  const { state: next, unknown } = importDeprecated(state, { ...nothing, free: ['local', 'x'] });
  expect(unknown).toEqual(['local', 'x']);
  expect(next).toBe(state);
});
