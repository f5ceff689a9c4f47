import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { afterEach, expect, test, vi } from 'vitest';
import { ServerHealth } from './server-health.js';
import { upstreamsOf } from './upstream.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => listener(response));
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Real timers, but a monotonic clock that the test moves on. */
function movableClock() {
  let added = 0;
  const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + added };
  return { clock, moveOn: (ms: number) => (added += ms) };
}

const { signal } = new AbortController();

test('ServerHealth: a frozen server is no_answer after a second, and live again later', async () => {
  const held: ServerResponse[] = [];
  let isFrozen = false;
  const url = await serve((response) => {
    if (isFrozen) held.push(response);
    else response.end('{}');
  });
  const { clock, moveOn } = movableClock();
  const health = new ServerHealth(upstreamsOf({ queue: { url }, database: { url } }, clock), clock);
  await expect.poll(async () => (await health.read(signal)).queue.state).toBe('live');

  isFrozen = true;
  await expect.poll(() => health.read(signal).then(() => held.length)).toBe(2);
  moveOn(1_000);
  const { queue } = await health.read(signal);
  expect(queue).toMatchObject({ state: 'no_answer', latency_ms: null, detail: null });
  expect(queue.answered_ms_ago).toBeGreaterThanOrEqual(1_000);

  isFrozen = false;
  for (const response of held) response.end('{}');
  await expect.poll(async () => (await health.read(signal)).queue.state).toBe('live');
});

test('ServerHealth: a server that is not running is down, with the reason', async () => {
  const live = await serve((response) => response.end('{}'));
  const gone = await serve(() => undefined);
  servers.pop()!.close();
  const settings = { queue: { url: gone }, database: { url: live } };
  const health = new ServerHealth(upstreamsOf(settings, systemClock), systemClock);
  await vi.waitFor(async () => {
    const { queue, database } = await health.read(signal);
    expect(queue).toMatchObject({ state: 'down', answered_ms_ago: null });
    expect(queue.detail).toContain('is not running');
    expect(database.state).toBe('live');
  }, 60_000);
});

test('ServerHealth: never asked is checking', async () => {
  const url = await serve(() => undefined);
  const { clock } = movableClock();
  const upstreams = upstreamsOf({ queue: { url }, database: { url } }, clock);
  const { queue } = await new ServerHealth(upstreams, clock).read(signal);
  expect(queue).toEqual({
    state: 'checking',
    answered_ms_ago: null,
    latency_ms: null,
    detail: null,
  });
});
