import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, expect, test } from 'vitest';
import { Etcd } from './etcd.js';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Call {
  path: string;
  token: string;
}

/** A server that answers as `answer` says, and the calls it got. */
async function serve(answer: (call: Call) => [number, string]) {
  const calls: Call[] = [];
  const server = createServer((request, response) => {
    const call = { path: request.url ?? '', token: request.headers.authorization ?? '' };
    calls.push(call);
    const [status, body] = answer(call);
    request.resume();
    response.writeHead(status).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const user = { name: 'node', password: 'secret' };
  const etcd = new Etcd({ endpoints: [endpoint], clock: systemClock, timeoutMs: 10_000, user });
  closing.push(() => {
    etcd.close();
    server.close();
  });
  return { etcd, calls };
}

test('etcd: calls at the same time share one login', async () => {
  const { etcd, calls } = await serve(({ path }) =>
    path.endsWith('authenticate') ? [200, '{"token":"t1"}'] : [200, '{}'],
  );
  await Promise.all([etcd.list('/a/'), etcd.list('/a/'), etcd.list('/a/')]);
  expect(calls.filter(({ path }) => path.endsWith('authenticate'))).toHaveLength(1);
  expect(calls.slice(1).map(({ token }) => token)).toEqual(['t1', 't1', 't1']);
});

test.each([
  ['an expired token', 401, { code: 16, message: 'etcdserver: invalid auth token' }],
  ['a change of users', 400, { code: 3, message: 'etcdserver: revision of auth store is old' }],
])('etcd: logs in again after %s', async (_, status, refusal) => {
  let logins = 0;
  const { etcd } = await serve(({ path, token }) => {
    if (path.endsWith('authenticate')) return [200, JSON.stringify({ token: `t${++logins}` })];
    return token === 't1' ? [status, JSON.stringify(refusal)] : [200, '{}'];
  });
  expect(await etcd.list('/a/')).toEqual([]);
  expect(logins).toBe(2);
});

test('etcd: shows a refusal in plain text', async () => {
  const { etcd } = await serve(() => [400, 'CommonName of client is not accepted\n']);
  await expect(etcd.list('/a/')).rejects.toThrow('answered: CommonName of client is not accepted');
});
