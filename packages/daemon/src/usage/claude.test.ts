import { readFileSync, statSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { figures, UsageBench } from './usage.test-support.js';

let bench: UsageBench;
beforeEach(async () => {
  bench = await UsageBench.start();
  bench.write('.claude/.credentials.json', {
    claudeAiOauth: { accessToken: 'sk-ant-oat01-abc', refreshToken: 'r', expiresAt: 1 },
  });
  bench.provider.answer = {
    body: {
      five_hour: { utilization: 41, resets_at: '2026-01-15T12:00:00.123456+00:00' },
      seven_day: { utilization: 63, resets_at: '2026-01-19T00:00:00+00:00' },
      seven_day_opus: null,
    },
  };
});
afterEach(() => bench.stop());

const unknown = [['five_hour', null, null]];

test('the windows come from the OAuth usage endpoint, asked with the local login', async () => {
  const entry = await bench.entry('claude');
  expect(entry).toEqual({
    id: 'claude',
    tier: 'subscription',
    installed: true,
    enabled: true,
    status: 'ok',
    usage: [
      {
        id: 'claude:five_hour',
        scope: 'five_hour',
        label: '5-hour window',
        used_percent: 41,
        resets_at: '2026-01-15T12:00:00.123Z',
        model_families: null,
        models: null,
        forecast: null,
      },
      {
        id: 'claude:seven_day',
        scope: 'seven_day',
        label: '7-day window',
        used_percent: 63,
        resets_at: '2026-01-19T00:00:00.000Z',
        model_families: null,
        models: null,
        forecast: null,
      },
    ],
    observed_at: expect.stringMatching(/^\d{4}-.*Z$/),
    cached: false,
  });
  const [call] = bench.provider.calls;
  expect(call).toMatchObject({ method: 'GET', url: '/api/oauth/usage', body: '' });
  expect(call?.headers).toMatchObject({
    authorization: 'Bearer sk-ant-oat01-abc',
    'anthropic-beta': 'oauth-2025-04-20',
  });
});

test('the login is only read: a run-out one is neither renewed nor written', async () => {
  const file = bench.write('.claude/.credentials.json', {
    claudeAiOauth: { accessToken: 'old', refreshToken: 'r', expiresAt: 1 },
  });
  const before = [readFileSync(file, 'utf8'), statSync(file).mtimeMs];
  bench.provider.answer = { status: 401, body: { error: 'expired' } };
  const entry = await bench.entry('claude');
  expect([entry.status, figures(entry)]).toEqual(['unauthenticated', unknown]);
  expect([readFileSync(file, 'utf8'), statSync(file).mtimeMs]).toEqual(before);
  expect(bench.provider.calls).toHaveLength(1);
});

test('a window at its cap is rate_limited, and beyond it too', async () => {
  for (const utilization of [100, 104.5]) {
    bench.provider.answer = { body: { five_hour: { utilization, resets_at: null } } };
    const entry = await bench.entry('claude');
    expect(entry).toMatchObject({ status: 'rate_limited' });
    expect(figures(entry)).toEqual([['five_hour', utilization, null]]);
  }
});

test('what the provider does not know is null, not 0', async () => {
  const cases: unknown[] = [null, { utilization: null, resets_at: null }, { utilization: 'most' }];
  for (const window of cases) {
    bench.provider.answer = { body: { five_hour: window } };
    const entry = await bench.entry('claude');
    expect([entry.status, figures(entry)]).toEqual(['ok', unknown]);
  }
});

describe('without an answer the row is null and the status says why', () => {
  const cases: readonly [what: string, answer: object, status: string, error: string][] = [
    ['too many requests', { status: 429 }, 'unavailable', 'answered 429: too many requests'],
    ['a fault', { status: 500, body: 'x' }, 'unavailable', 'answered 500'],
    ['unavailable', { status: 503 }, 'unavailable', 'answered 503'],
    ['forbidden', { status: 403 }, 'unauthenticated', 'does not accept the login (403)'],
    ['no JSON', { body: '<html>' }, 'error', 'is not JSON'],
    ['no window', { body: { seven_day: {} } }, 'error', 'no five-hour window'],
    ['a window without a figure', { body: { five_hour: {} } }, 'error', 'no five-hour window'],
    ['a list', { body: [] }, 'error', 'no five-hour window'],
    ['no end', { body: 'x'.repeat(1_100_000) }, 'error', 'is too long'],
  ];
  test.for(cases)('%s', async ([, answer, status, error]) => {
    bench.provider.answer = answer;
    const entry = await bench.entry('claude');
    expect([entry.status, figures(entry)]).toEqual([status, unknown]);
    expect(entry.error).toContain(error);
    expect(entry.observed_at).not.toBeNull();
  });

  test('a redirect, which is not followed', async () => {
    const elsewhere = bench.provider.url('/elsewhere');
    bench.provider.answer = { status: 302, headers: { location: elsewhere } };
    const entry = await bench.entry('claude');
    expect([entry.status, figures(entry)]).toEqual(['unavailable', unknown]);
    expect(bench.provider.calls.map(({ url }) => url)).toEqual(['/api/oauth/usage']);
  });

  test('nobody listens', async () => {
    const url = bench.provider.url('/x').replace(/:\d+/, ':1');
    const entry = await bench.entry('claude', {}, { claude: { url } });
    expect([entry.status, figures(entry)]).toEqual(['unavailable', unknown]);
    expect(entry.error).toBe('the provider cannot be reached: the connection was refused');
  });

  test('silence, after three seconds', async () => {
    bench.provider.answer = { hang: true };
    const start = performance.now();
    const entry = await bench.entry('claude');
    expect([entry.status, figures(entry)]).toEqual(['timeout', unknown]);
    expect(performance.now() - start).toBeGreaterThan(2_900);
    expect(performance.now() - start).toBeLessThan(20_000);
  });
});

describe('without a login nothing is asked', () => {
  const cases: readonly [what: string, login: unknown][] = [
    ['an empty file', ''],
    ['no JSON', '{"claudeAiOauth":'],
    ['no token', { claudeAiOauth: {} }],
    ['an empty token', { claudeAiOauth: { accessToken: ' ' } }],
    ['a token that no header can carry', { claudeAiOauth: { accessToken: 'a\r\nb: c' } }],
    ['another shape', ['x']],
  ];
  test.for(cases)('%s', async ([, login]) => {
    bench.write('.claude/.credentials.json', login);
    const entry = await bench.entry('claude');
    expect([entry.status, figures(entry)]).toEqual(['unauthenticated', unknown]);
    expect(entry).toMatchObject({ observed_at: null });
    expect(bench.provider.calls).toEqual([]);
  });

  test('a login elsewhere is found by CLAUDE_CONFIG_DIR', async () => {
    bench.write('.claude/.credentials.json', '');
    bench.write('moved/.credentials.json', { claudeAiOauth: { accessToken: 'moved' } });
    bench.environment['CLAUDE_CONFIG_DIR'] = `${bench.home}/moved`;
    expect(await bench.entry('claude')).toMatchObject({ status: 'ok' });
    expect(bench.provider.calls[0]?.headers.authorization).toBe('Bearer moved');
  });
});
