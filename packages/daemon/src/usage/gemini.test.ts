import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { figures, UsageBench } from './usage.test-support.js';

let bench: UsageBench;
beforeEach(async () => {
  bench = await UsageBench.start();
  bench.write('.gemini/oauth_creds.json', { access_token: 'ya29.gemini', expiry_date: 1 });
});
afterEach(() => bench.stop());

const tomorrow = '2026-01-16T00:00:00Z';
const later = '2026-01-20T00:00:00.000Z';
const byModel = {
  buckets: [
    { modelId: 'gemini-2.5-pro', remainingFraction: 0.9, resetTime: tomorrow, tokenType: 'X' },
    { modelId: 'gemini-2.5-flash', remainingFraction: 0.35, resetTime: later },
    { modelId: 'gemini-3-pro', resetTime: tomorrow },
    { modelId: 'claude-sonnet-4-5', remainingFraction: 1, resetTime: tomorrow },
    { modelId: 'gpt-oss-120b', remainingFraction: 0.75, resetTime: '2026-01-16T05:00:00+02:00' },
  ],
};
const byGroup = {
  groups: [
    {
      displayName: 'Gemini Models',
      buckets: [
        { bucketId: 'gemini-weekly', remainingFraction: 0.806224, resetTime: later },
        { bucketId: 'gemini-5h', remainingFraction: 0, resetTime: tomorrow },
      ],
    },
    {
      displayName: 'Claude and GPT models',
      buckets: [{ bucketId: '3p-weekly', remainingFraction: 1 }],
    },
  ],
};
const unknown = [
  ['gemini', null, null],
  ['non-gemini', null, null],
];

test('of each family the most used model counts, with its own reset', async () => {
  bench.provider.answer = { body: byModel };
  bench.environment['GOOGLE_CLOUD_PROJECT'] = 'my-project';
  const entry = await bench.entry('gemini');
  expect(entry.status).toBe('ok');
  expect(entry.usage).toEqual([
    {
      id: 'gemini:gemini',
      scope: 'gemini',
      label: 'Gemini models',
      used_percent: 65,
      resets_at: later,
      model_families: ['gemini'],
      models: ['gemini-2.5-flash', 'gemini-2.5-pro', 'gemini-3-pro'],
      forecast: null,
    },
    {
      id: 'gemini:non-gemini',
      scope: 'non-gemini',
      label: 'Other models',
      used_percent: 25,
      resets_at: '2026-01-16T03:00:00.000Z',
      model_families: ['claude', 'gpt'],
      models: ['claude-sonnet-4-5', 'gpt-oss-120b'],
      forecast: null,
    },
  ]);
  const [call] = bench.provider.calls;
  expect(call).toMatchObject({ method: 'POST', url: '/v1internal:retrieveUserQuota' });
  expect(JSON.parse(call?.body ?? '')).toEqual({ project: 'my-project' });
  expect(call?.headers.authorization).toBe('Bearer ya29.gemini');
});

test('fractions lose the noise of their binary form', async () => {
  bench.provider.answer = { body: { buckets: [{ modelId: 'gemini-x', remainingFraction: 0.9 }] } };
  expect(figures(await bench.entry('gemini'))).toEqual([
    ['gemini', 10, null],
    ['non-gemini', null, null],
  ]);
  expect(JSON.parse(bench.provider.calls[0]?.body ?? '')).toEqual({});
});

test('agy has its own login, and groups are read as well as models', async () => {
  bench.write('.gemini/antigravity-cli/antigravity-oauth-token', {
    token: { access_token: 'ya29.agy', refresh_token: 'r', expiry: '2020-01-01T00:00:00Z' },
    auth_method: 'consumer',
  });
  bench.provider.answer = { body: byGroup };
  const entry = await bench.entry('agy');
  expect(entry.status).toBe('rate_limited');
  expect(entry.usage.map(({ id }) => id)).toEqual(['agy:gemini', 'agy:non-gemini']);
  expect(figures(entry)).toEqual([
    ['gemini', 100, '2026-01-16T00:00:00.000Z'],
    ['non-gemini', 0, null],
  ]);
  expect(entry.usage.map(({ models }) => models)).toEqual([null, null]);
  expect(bench.provider.calls.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer ya29.agy',
  ]);
});

test('of two windows that are used alike the one that lasts longer counts', async () => {
  const buckets = [
    { bucketId: 'gemini-5h', remainingFraction: 0, resetTime: tomorrow },
    { bucketId: 'gemini-weekly', remainingFraction: 0, resetTime: later },
  ];
  bench.provider.answer = { body: { groups: [{ displayName: 'Gemini', buckets }] } };
  expect(figures(await bench.entry('gemini'))[0]).toEqual(['gemini', 100, later]);
});

test('gemini: an account with quota by groups only is read by groups', async () => {
  bench.provider.answer = ({ url }) =>
    url.endsWith('Summary') ? { body: byGroup } : { status: 403, body: { error: 'UNSUPPORTED' } };
  const entry = await bench.entry('agy');
  expect(entry.status).toBe('rate_limited');
  expect(bench.provider.calls.map(({ url }) => url)).toEqual([
    '/v1internal:retrieveUserQuota',
    '/v1internal:retrieveUserQuotaSummary',
  ]);
});

describe('without an answer both rows are null', () => {
  const cases: readonly [what: string, answer: object, status: string, calls: number][] = [
    ['a refused login', { status: 401 }, 'unauthenticated', 1],
    ['a login without the right', { status: 403 }, 'unauthenticated', 2],
    ['too many requests', { status: 429 }, 'unavailable', 1],
    ['no such thing', { status: 404 }, 'unavailable', 2],
    ['no buckets', { body: {} }, 'error', 2],
    ['buckets without figures', { body: { buckets: [{ modelId: 'gemini-x' }] } }, 'error', 2],
    ['buckets of nobody', { body: { buckets: [{ remainingFraction: 0.5 }] } }, 'error', 2],
    [
      'a fraction beyond 1',
      { body: { buckets: [{ modelId: 'g', remainingFraction: 7 }] } },
      'error',
      2,
    ],
  ];
  test.for(cases)('%s', async ([, answer, status, calls]) => {
    bench.provider.answer = answer;
    const entry = await bench.entry('gemini');
    expect([entry.status, figures(entry)]).toEqual([status, unknown]);
    expect(bench.provider.calls).toHaveLength(calls);
  });

  test('no login', async () => {
    const other = await UsageBench.start();
    for (const id of ['gemini', 'agy']) {
      const entry = await other.entry(id);
      expect([entry.status, figures(entry)]).toEqual(['unauthenticated', unknown]);
    }
    await other.stop();
  });
});

test('a URL of another form is called as it stands, once', async () => {
  bench.provider.answer = { status: 404 };
  await bench.entry('gemini', {}, { gemini: { url: bench.provider.url('/quota?x=1') } });
  expect(bench.provider.calls.map(({ url }) => url)).toEqual(['/quota?x=1']);
});
