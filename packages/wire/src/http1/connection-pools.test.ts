import { describe, expect, test } from 'vitest';
import {
  loopbackGuard,
  openOutbound,
  startHttp,
  tableResolver,
} from '../../test/http1/loopback.js';
import { systemClock } from '@millrace/kit/clock';
import { callbackGuard, parseAllowlist } from '@millrace/kit/outbound';

describe('connection pool', () => {
  test('sequential requests share one connection', async () => {
    const server = await startHttp((_, response) => response.end());
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    for (let i = 0; i < 50; i++) await outbound.request({ url, method: 'POST', body: 'x' });
    expect(server.connections).toBe(1);
  });

  test('parallel requests use at most the limit of connections', async () => {
    const server = await startHttp((_, response) => void setImmediate(() => response.end()));
    const { lookups, resolver } = tableResolver({ 'hooks.test': ['127.0.0.1'] });
    const limits = { connectionsPerPool: 8 };
    const outbound = openOutbound({ guard: loopbackGuard('hooks.test'), resolver, limits });
    const url = `http://hooks.test:${server.port}/`;
    const outcomes = await Promise.all(
      Array.from({ length: 400 }, () => outbound.request({ url, method: 'POST', body: 'x' })),
    );
    expect(outcomes.every((outcome) => outcome.ok && outcome.remoteIp === '127.0.0.1')).toBe(true);
    expect(server.connections).toBe(8);
    expect(lookups).toHaveLength(1);
  });

  test('a request that times out while it waits leaves the queue', async () => {
    let calls = 0;
    const server = await startHttp((_, response) => {
      calls++;
      setTimeout(() => response.end(), 150);
    });
    const limits = { connectionsPerPool: 1 };
    const outbound = openOutbound({ guard: loopbackGuard(), limits });
    const url = `http://127.0.0.1:${server.port}/`;
    const [first, second, third] = await Promise.all([
      outbound.request({ url, method: 'POST' }),
      outbound.request({ url, method: 'POST', timeoutMs: 50 }),
      outbound.request({ url, method: 'POST' }),
    ]);
    expect(first).toMatchObject({ ok: true });
    expect(second).toMatchObject({
      errorType: 'TIMEOUT',
      message: 'No complete response within 50 ms (waiting for a connection)',
    });
    expect(third).toMatchObject({ ok: true });
    expect(calls).toBe(2);
    expect(server.connections).toBe(1);
  });

  test('a burst of deadlines leaves no connection behind', async () => {
    let isSlow = true;
    const server = await startHttp((_, response) => void (isSlow || response.end()));
    const limits = { connectionsPerPool: 4 };
    const outbound = openOutbound({ guard: loopbackGuard(), limits });
    const url = `http://127.0.0.1:${server.port}/`;
    const burst = (timeoutMs: number) =>
      Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          outbound.request({ url, method: 'POST', timeoutMs: timeoutMs + i }),
        ),
      );
    for (const outcome of await burst(20)) expect(outcome).toMatchObject({ errorType: 'TIMEOUT' });
    isSlow = false;
    for (const outcome of await burst(5_000)) expect(outcome).toMatchObject({ ok: true });
    expect(server.open.size).toBeLessThanOrEqual(4);
  });
});

test('a connection opened under one policy is not used under another', async () => {
  const server = await startHttp((_, response) => response.end());
  const { lookups, resolver } = tableResolver({ 'hooks.test': ['127.0.0.1'] });
  const entry = { scheme: 'http', host: 'hooks.test', port: '*' };
  const guard = callbackGuard(
    parseAllowlist([
      { ...entry, path_prefix: '/open', networks: ['127.0.0.0/8'] },
      { ...entry, path_prefix: '/narrow', networks: ['127.0.0.1/32'] },
      { ...entry, path_prefix: '/shut' },
    ]),
  );
  const outbound = openOutbound({ guard, resolver });
  const call = (path: string) =>
    outbound.request({ url: `http://hooks.test:${server.port}${path}`, method: 'POST' });
  expect(await call('/open')).toMatchObject({ ok: true });
  expect(await call('/open/again')).toMatchObject({ ok: true });
  expect(server.connections).toBe(1);
  expect(await call('/narrow')).toMatchObject({ ok: true });
  expect(server.connections).toBe(2);
  expect(await call('/shut')).toMatchObject({ errorType: 'TARGET_BLOCKED' });
  expect(server.connections).toBe(2);
  expect(lookups).toHaveLength(3);
});

test('an old connection closes after one more request, and the name is resolved again', async () => {
  const server = await startHttp((_, response) => response.end());
  const { lookups, resolver } = tableResolver({ 'hooks.test': ['127.0.0.1'] });
  let now = 0;
  const outbound = openOutbound({
    guard: loopbackGuard('hooks.test'),
    resolver,
    clock: { ...systemClock, monotonic: () => now },
  });
  const call = () => outbound.request({ url: `http://hooks.test:${server.port}/`, method: 'POST' });
  await call();
  await call();
  expect(lookups).toHaveLength(1);
  now = 30_000;
  expect(await call()).toMatchObject({ ok: true });
  expect(lookups).toHaveLength(1);
  expect(await call()).toMatchObject({ ok: true });
  expect(lookups).toHaveLength(2);
  expect(server.connections).toBe(2);
});

test('the least recently used idle pool is closed when there are too many', async () => {
  const servers = await Promise.all(
    Array.from({ length: 3 }, () => startHttp((_, response) => response.end())),
  );
  const outbound = openOutbound({ guard: loopbackGuard(), limits: { pools: 2 } });
  const call = (i: number) =>
    outbound.request({ url: `http://127.0.0.1:${servers[i]?.port}/`, method: 'POST' });
  await call(0);
  await call(1);
  await call(0);
  expect(servers.map((server) => server.open.size)).toEqual([1, 1, 0]);
  await call(2);
  await expect.poll(() => servers.map((server) => server.open.size)).toEqual([1, 0, 1]);
  expect(await call(1)).toMatchObject({ ok: true });
});

test('a pool with requests in flight is never closed', async () => {
  const slow = await startHttp((_, response) => void setTimeout(() => response.end('done'), 150));
  const quick = await startHttp((_, response) => response.end());
  const outbound = openOutbound({ guard: loopbackGuard(), limits: { pools: 1 } });
  const waiting = outbound.request({ url: `http://127.0.0.1:${slow.port}/`, method: 'POST' });
  const url = `http://127.0.0.1:${quick.port}/`;
  expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
  expect(await waiting).toMatchObject({ ok: true });
});
