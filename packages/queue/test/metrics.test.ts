import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, expect, test } from 'vitest';
import { openEmbeddedStore } from '../src/storage/embedded/open.js';
import { makeQueue, newDirectory, startTestServer } from './support/server.js';
import { claim, submitOne } from './support/tasks.js';

const directory = newDirectory(afterAll);
const openStore = () =>
  openEmbeddedStore(directory, { clock: systemClock, random: systemRandom, log: silentLog });
const store = await openStore();
const server = await startTestServer({ onEnd: afterAll, store });
await makeQueue(server);

const get = async (path: string) => {
  const answer = await server.as('submitter', { path: `/v1/queues/mail/${path}` });
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
interface Point {
  ts: string;
  submitted: number;
  succeeded: number;
  failed: number;
  dead: number;
  pending: number | null;
  run_ms: { p50: number | null };
}
const metrics = async (query = '') => {
  const body = (await get(`metrics${query}`)) as { step_s: number; points: Point[] };
  const sum = (name: 'submitted' | 'succeeded' | 'failed' | 'dead') =>
    body.points.reduce((total, point) => total + point[name], 0);
  return { ...body, sum };
};

test('a queue without history has points without gaps', async () => {
  const { step_s, points } = await metrics();
  expect([step_s, points.length]).toEqual([10, 360]);
  points.forEach(({ ts }, i) => {
    expect(Date.parse(ts) - Date.parse(points[0]!.ts)).toBe(i * 10_000);
  });
  expect(points[0]).toMatchObject({
    submitted: 0,
    pending: null,
    wait_ms: { p50: null, p95: null, p99: null },
  });
  expect(points.at(-1)).toMatchObject({ pending: 0, in_flight: 0 });
  expect(await get('stats')).toMatchObject({ succeeded_total: 0, rate_per_second: 0 });
});

test('what happens is counted at once, and stays after it is stored', async () => {
  for (let i = 0; i < 3; i++) await submitOne(server, 'mail');
  const claimed = await claim(store, 'mail', server.clock.now(), 3);
  const settle = (i: number, verb: string, body: object) =>
    server.as('submitter', {
      method: 'POST',
      path: `/v1/tasks/${claimed[i]!.id}:${verb}`,
      headers: { 'x-queue-lease-token': claimed[i]!.lease!.token },
      body,
    });
  expect((await settle(0, 'complete', {})).status).toBe(200);
  expect((await settle(1, 'complete', {})).status).toBe(200);
  expect((await settle(2, 'fail', { retry: false })).status).toBe(200);
  const expected = { succeeded_total: 2, failed_total: 1, dead_total: 1, rate_per_second: 0.05 };
  expect(await get('stats')).toMatchObject(expected);
  const { sum, points } = await metrics('?since=5m');
  const counts = [sum('submitted'), sum('succeeded'), sum('failed'), sum('dead')];
  expect(counts).toEqual([3, 2, 1, 1]);
  expect(points.some(({ run_ms: run }) => run.p50 !== null)).toBe(true);
  for (const step of ['10s', '1m', '15m']) {
    expect((await metrics(`?since=1h&step=${step}`)).sum('submitted')).toBe(3);
  }
  expect(server.differences).toEqual([]);
  await server.running.stop();
  // A later run of a server on the same data.
  const next = await startTestServer({ store: await openStore() });
  const path = '/v1/queues/mail/stats';
  expect((await next.as('submitter', { path })).body).toMatchObject(expected);
  const day = await next.as('submitter', { path: '/v1/queues/mail/metrics?since=1d' });
  const { step_s, points: later } = day.body as unknown as { step_s: number; points: Point[] };
  expect([step_s, later.length]).toEqual([60, 1_440]);
  expect(later.reduce((total, { dead }) => total + dead, 0)).toBe(1);
  for (const [query, code] of [
    ['since=31d', 'INVALID_QUERY'],
    ['since=3h&step=10s', 'INVALID_QUERY'],
    ['since=3d&step=1m', 'INVALID_QUERY'],
    ['since=now', 'INVALID_QUERY'],
    ['since=0s', 'INVALID_QUERY'],
    ['step=5s', 'INVALID_QUERY'],
  ]) {
    const refused = await next.as('submitter', { path: `/v1/queues/mail/metrics?${query}` });
    expect([refused.status, refused.body['code']], query).toEqual([422, code]);
  }
  const month = await next.as('submitter', { path: '/v1/queues/mail/metrics?since=30d' });
  expect(month.body).toMatchObject({ step_s: 900 });
});
