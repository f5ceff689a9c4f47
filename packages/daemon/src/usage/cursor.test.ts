import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { figures, UsageBench } from './usage.test-support.js';

let bench: UsageBench;
beforeEach(async () => {
  bench = await UsageBench.start();
  bench.write('.config/cursor/auth.json', { accessToken: 'ey.J.x', refreshToken: 'r' });
});
afterEach(() => bench.stop());

const plan = {
  billingCycleStart: '1783180030000',
  billingCycleEnd: '1785858430000',
  planUsage: { totalPercentUsed: 38.24065934, autoPercentUsed: 12, apiPercentUsed: 0, limit: 7000 },
  displayMessage: 'someone@example.com has used much',
};
const unknown = [
  ['api', null, null],
  ['auto', null, null],
  ['included', null, null],
];

test('three windows of one cycle, sorted by id', async () => {
  bench.provider.answer = { body: plan };
  const entry = await bench.entry('cursor-agent');
  expect(entry.status).toBe('ok');
  expect(entry.usage.map(({ id }) => id)).toEqual([
    'cursor-agent:api',
    'cursor-agent:auto',
    'cursor-agent:included',
  ]);
  const end = new Date(1785858430000).toISOString();
  expect(figures(entry)).toEqual([
    ['api', 0, end],
    ['auto', 12, end],
    ['included', 38.2407, end],
  ]);
  const [call] = bench.provider.calls;
  expect(call).toMatchObject({
    method: 'POST',
    url: '/aiserver.v1.DashboardService/GetCurrentPeriodUsage',
    body: '{}',
  });
  expect(call?.headers).toMatchObject({
    authorization: 'Bearer ey.J.x',
    'connect-protocol-version': '1',
    'content-type': 'application/json',
  });
});

test('a figure that is left out is unknown while the others stand', async () => {
  bench.provider.answer = { body: { planUsage: { totalPercentUsed: 100 } } };
  const entry = await bench.entry('cursor-agent');
  expect(entry.status).toBe('rate_limited');
  expect(figures(entry)).toEqual([
    ['api', null, null],
    ['auto', null, null],
    ['included', 100, null],
  ]);
});

test.for([{}, { planUsage: null }, { planUsage: {} }, 'nothing'])(
  'an answer without a plan is an error: %j',
  async (body) => {
    bench.provider.answer = { body };
    const entry = await bench.entry('cursor-agent');
    expect([entry.status, figures(entry)]).toEqual(['error', unknown]);
  },
);

describe('logins', () => {
  test('the one of macOS is found too', async () => {
    const other = await UsageBench.start();
    other.write('.cursor/auth.json', { accessToken: 'mac' });
    other.provider.answer = { body: plan };
    expect(await other.entry('cursor-agent')).toMatchObject({ status: 'ok' });
    expect(other.provider.calls[0]?.headers.authorization).toBe('Bearer mac');
    await other.stop();
  });

  test('an API key alone gives the three rows with nulls, and nothing is asked', async () => {
    bench.write('.config/cursor/auth.json', { apiKey: 'key_123' });
    const byFile = await bench.entry('cursor-agent');
    bench.write('.config/cursor/auth.json', {});
    bench.environment['CURSOR_API_KEY'] = 'key_456';
    const byVariable = await bench.entry('cursor-agent');
    for (const entry of [byFile, byVariable]) {
      expect([entry.status, figures(entry)]).toEqual(['unsupported', unknown]);
      expect(entry.error).toBe('an API key cannot ask for usage; log in with `cursor-agent login`');
    }
    expect(bench.provider.calls).toEqual([]);
  });

  test('a login beside an API key is used', async () => {
    bench.environment['CURSOR_API_KEY'] = 'key_456';
    bench.provider.answer = { body: plan };
    expect(await bench.entry('cursor-agent')).toMatchObject({ status: 'ok' });
  });

  test('none at all is unauthenticated', async () => {
    bench.write('.config/cursor/auth.json', {});
    const entry = await bench.entry('cursor-agent');
    expect([entry.status, figures(entry)]).toEqual(['unauthenticated', unknown]);
  });
});
