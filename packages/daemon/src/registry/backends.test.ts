import { simulate } from '@millrace/kit/simulation';
import { expect, test } from 'vitest';
import { firstSettings, newBackend, type RegistryState } from '../core/backend.js';
import { Backends, type Registry, type Step, type BackendsParts } from './backends.js';

/** A registry in memory whose clock is set by hand. */
function backendsAt(start: number, findAcp?: BackendsParts['findAcp']) {
  const clock = { ...simulate(1).clock, now: () => at.now };
  const at = { now: start };
  let state: RegistryState = {
    backends: ['amp', 'claude', 'gone'].map((id) =>
      newBackend({ id, installed: true, binaryPath: `/bin/${id}` }, start),
    ),
    settings: firstSettings,
  };
  const registry = {
    read: () => Promise.resolve(state),
    change: <Result>(step: Step<Result>) => {
      const stepped = step(state, at.now);
      state = stepped.state;
      return Promise.resolve(stepped);
    },
  } as unknown as Registry;
  const knownIds = ['amp', 'claude'];
  const detect = () => Promise.resolve([]);
  const backends = new Backends({
    registry,
    clock,
    knownIds,
    detect,
    ...(findAcp && { findAcp }),
  });
  const shown = async () => backends.document(await backends.read());
  const limitedUntil = async (id: string) =>
    (await shown()).backends.find((row) => row.id === id)?.limited_until;
  return { at, backends, shown, limitedUntil };
}

test('the registry is written out once for those who read it while nothing changes', async () => {
  const { at, shown } = backendsAt(1_000);
  const first = await shown();
  at.now += 86_400_000;
  expect(await shown()).toBe(first);
  expect(first.backends.map(({ id }) => id)).toEqual(['amp', 'claude']);
});

test('every change is seen by the next read', async () => {
  const { backends, shown } = backendsAt(1_000);
  const row = async () => (await shown()).backends.find(({ id }) => id === 'claude');
  await shown();
  await backends.update('claude', { tier: 'free' });
  expect(await row()).toMatchObject({ tier: 'free', enabled: true, default: false });
  await backends.setDefault('claude');
  expect(await row()).toMatchObject({ tier: 'free', enabled: true, default: true });
  await backends.update('claude', { enabled: false });
  expect(await row()).toMatchObject({ tier: 'free', enabled: false });
  await backends.setThinkingMode('local_only');
  expect((await shown()).settings.internal_thinking_mode).toBe('local_only');
});

test('a cooldown is shown until its last millisecond, each one of several by itself', async () => {
  const { at, backends, limitedUntil } = backendsAt(1_000);
  await backends.limit('claude', 5_000);
  await backends.limit('amp', 9_000);
  expect(await limitedUntil('claude')).toBe('1970-01-01T00:00:05.000Z');
  at.now = 4_999;
  expect(await limitedUntil('claude')).toBe('1970-01-01T00:00:05.000Z');
  at.now = 5_000;
  expect(await limitedUntil('claude')).toBeNull();
  expect(await limitedUntil('amp')).toBe('1970-01-01T00:00:09.000Z');
  at.now = 9_000;
  expect(await limitedUntil('amp')).toBeNull();
});

test('a clock that is set back brings a cooldown back with it', async () => {
  const { at, backends, limitedUntil } = backendsAt(1_000);
  await backends.limit('claude', 5_000);
  at.now = 6_000;
  expect(await limitedUntil('claude')).toBeNull();
  at.now = 2_000;
  expect(await limitedUntil('claude')).toBe('1970-01-01T00:00:05.000Z');
});

test('acp: a program that fails does not keep the next one from being found', async () => {
  const row = { via: 'native' as const, command: ['/bin/claude', '--acp'] };
  const tried: string[] = [];
  const { backends, shown } = backendsAt(1_000, ({ id }) => {
    tried.push(id);
    return id === 'amp' ? Promise.reject(new Error('it is gone')) : Promise.resolve(row);
  });
  const failed: unknown[] = [];
  await backends.findMissingAcp((id, error) => failed.push([id, String(error)]));
  expect(failed).toEqual([['amp', 'Error: it is gone']]);
  expect((await shown()).backends.map(({ acp }) => acp)).toEqual([undefined, row]);
  await backends.findMissingAcp(() => undefined);
  expect(tried).toEqual(['amp', 'claude', 'amp']);
});
