import { openApiDocument } from '@millrace/contract/documents';
import { DocumentSchemas } from '@millrace/kit/http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { UsageDocument } from './document.js';
import { figures, subscribed, UsageBench } from './usage.test-support.js';

let bench: UsageBench;
beforeEach(async () => {
  bench = await UsageBench.start();
  bench.write('.claude/.credentials.json', { claudeAiOauth: { accessToken: 'token' } });
  bench.rows = [subscribed('claude')];
  answer(41);
});
afterEach(() => bench.stop());

function answer(utilization: number | null): void {
  bench.provider.answer = {
    body: { five_hour: { utilization, resets_at: '2026-01-15T12:00:00Z' } },
  };
}

const callCount = () => bench.provider.calls.length;

/** The only entry, with what matters here. */
function only({ backends }: UsageDocument) {
  const [entry] = backends;
  return [entry?.status, entry?.usage[0]?.used_percent, entry?.cached];
}

const check = new DocumentSchemas(openApiDocument('daemon')).named('UsageDocument');

function expectValid(document: UsageDocument): void {
  expect(check.faults(JSON.parse(JSON.stringify(document)))).toEqual([]);
}

describe('which rows', () => {
  test('those whose tier is exactly subscription, by id, disabled and uninstalled ones too', async () => {
    bench.rows = [
      subscribed('opencode'),
      subscribed('gemini', { installed: false }),
      subscribed('codex', { installed: false, enabled: false }),
      subscribed('claude', { enabled: false }),
      ...['free', 'pay_per_use', 'unclassified', 'local'].map((tier) => ({
        ...subscribed(`x-${tier}`),
        tier,
      })),
    ];
    const before = structuredClone(bench.rows);
    const document = await bench.usage().read();
    expectValid(document);
    expect(
      document.backends.map(({ id, installed, enabled, status }) => [
        id,
        installed,
        enabled,
        status,
      ]),
    ).toEqual([
      ['claude', true, false, 'ok'],
      ['codex', false, false, 'not_installed'],
      ['gemini', false, true, 'not_installed'],
      ['opencode', true, true, 'unsupported'],
    ]);
    expect(document.backends.map(({ usage }) => usage.length)).toEqual([1, 2, 2, 0]);
    expect(bench.rows).toEqual(before);
  });

  test('none is an empty document', async () => {
    bench.rows = [{ ...subscribed('claude'), tier: 'free' }];
    const document = await bench.usage().read();
    expectValid(document);
    expect(document).toMatchObject({ schema_version: 1, backends: [] });
    expect(callCount()).toBe(0);
  });

  test('a login outlives its command line, and so does its usage', async () => {
    bench.rows = [subscribed('claude', { installed: false })];
    const { backends } = await bench.usage().read();
    expect(backends[0]).toMatchObject({ installed: false, status: 'ok' });
  });

  test('a registry that cannot be read is a failure, not an empty document', async () => {
    Object.defineProperty(bench, 'rows', {
      get: () => {
        throw new Error('the store is closed');
      },
    });
    await expect(bench.usage().read()).rejects.toThrow('the store is closed');
  });
});

describe('the cache', () => {
  test('an answer is good for 60 seconds', async () => {
    const usage = bench.usage();
    const first = await usage.read();
    answer(55);
    bench.clock.move(59_000);
    const second = await usage.read();
    expect([only(first), only(second), callCount()]).toEqual([
      ['ok', 41, false],
      ['ok', 41, true],
      1,
    ]);
    expect(second.backends[0]?.observed_at).toBe(first.backends[0]?.observed_at);
    expect(second.generated_at > first.generated_at).toBe(true);
    bench.clock.move(1_001);
    expect([only(await usage.read()), callCount()]).toEqual([['ok', 55, false], 2]);
  });

  test('a refresh asks again', async () => {
    const usage = bench.usage();
    await usage.read();
    answer(55);
    expect(only(await usage.read({ refresh: true }))).toEqual(['ok', 55, false]);
    expect(only(await usage.read())).toEqual(['ok', 55, true]);
    expect(callCount()).toBe(2);
  });

  test('a failure is kept like an answer, with what was last seen beside it', async () => {
    const usage = bench.usage();
    const seenAt = (await usage.read()).backends[0]?.observed_at;
    bench.provider.answer = { status: 500 };
    bench.clock.move(61_000);
    const failed = await usage.read();
    const again = await usage.read();
    expect([only(failed), only(again)]).toEqual([
      ['unavailable', null, false],
      ['unavailable', null, true],
    ]);
    expect(callCount()).toBe(2);
    expectValid(again);
    const entry = again.backends[0]!;
    expect(figures(entry)).toEqual([['five_hour', null, null]]);
    expect(entry.last_good?.observed_at).toBe(seenAt);
    expect(figures(entry.last_good!)).toEqual([['five_hour', 41, '2026-01-15T12:00:00.000Z']]);
    answer(7);
    const healed = await usage.read({ refresh: true });
    expect(only(healed)).toEqual(['ok', 7, false]);
    expect(healed.backends[0]).not.toHaveProperty('last_good');
  });

  test('those who ask at the same time share one request', async () => {
    const usage = bench.usage();
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, at) => usage.read({ refresh: at % 2 === 0 })),
    );
    expect(new Set(all.map((document) => JSON.stringify(only(document)))).size).toBe(1);
    expect(callCount()).toBe(1);
  });
});

describe('a wait that the provider asks for', () => {
  test('in seconds: neither time nor a refresh shortens it', async () => {
    const usage = bench.usage();
    bench.provider.answer = { status: 429, headers: { 'retry-after': '300' } };
    expect(only(await usage.read())).toEqual(['unavailable', null, false]);
    answer(12);
    for (const stepMs of [0, 61_000, 200_000]) {
      bench.clock.move(stepMs);
      expect(only(await usage.read({ refresh: true }))).toEqual(['unavailable', null, true]);
      expect(only(await usage.read())).toEqual(['unavailable', null, true]);
    }
    expect(callCount()).toBe(1);
    bench.clock.move(40_000);
    expect([only(await usage.read()), callCount()]).toEqual([['ok', 12, false], 2]);
  });

  test('as a date, also with another status', async () => {
    const usage = bench.usage();
    const until = new Date(bench.clock.now() + 120_000).toUTCString();
    bench.provider.answer = { status: 503, headers: { 'retry-after': until } };
    await usage.read();
    answer(12);
    bench.clock.move(100_000);
    expect(only(await usage.read({ refresh: true }))).toEqual(['unavailable', null, true]);
    bench.clock.move(25_000);
    expect(only(await usage.read({ refresh: true }))).toEqual(['ok', 12, false]);
  });

  test('a shorter one than the cache does not shorten the cache', async () => {
    const usage = bench.usage();
    bench.provider.answer = { status: 429, headers: { 'retry-after': '5' } };
    await usage.read();
    answer(12);
    bench.clock.move(10_000);
    expect(only(await usage.read())).toEqual(['unavailable', null, true]);
    expect(only(await usage.read({ refresh: true }))).toEqual(['ok', 12, false]);
  });

  test.for(['soon', '-5', '', '1e9', '0'])('"%s" is none', async (text) => {
    const usage = bench.usage();
    bench.provider.answer = { status: 429, headers: { 'retry-after': text } };
    await usage.read();
    answer(12);
    expect(only(await usage.read({ refresh: true }))).toEqual(['ok', 12, false]);
  });
});

test('every provider has three seconds, or what is left of five', async () => {
  const limits: number[] = [];
  const after = bench.clock.after;
  bench.clock.after = (delayMs, run) => {
    limits.push(delayMs);
    return after(delayMs, run);
  };
  await bench.usage().read();
  expect(Math.max(...limits)).toBe(3_000);
  limits.length = 0;
  const rows = bench.rows;
  Object.defineProperty(bench, 'rows', {
    get: () => {
      bench.clock.move(4_000);
      return rows;
    },
  });
  await bench.usage().read();
  expect(limits[0]).toBeGreaterThan(500);
  expect(limits[0]).toBeLessThanOrEqual(1_000);
});

test('slow providers are waited for side by side', async () => {
  bench.write('.config/cursor/auth.json', { accessToken: 'a' });
  bench.write('.gemini/oauth_creds.json', { access_token: 'a' });
  bench.rows = ['claude', 'cursor-agent', 'gemini', 'agy'].map((id) => subscribed(id));
  bench.provider.answer = { hang: true };
  const start = performance.now();
  const { backends } = await bench.usage().read();
  expect(backends.map(({ status }) => status)).toEqual(Array(4).fill('timeout'));
  // Three seconds each, one after the other, would take twelve.
  expect(performance.now() - start).toBeLessThan(11_500);
});
