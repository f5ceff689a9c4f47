import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { locateGrpc, locateMetrics, locateQueue } from './locate.js';

const home = mkdtempSync(join(tmpdir(), 'ctl-queue-locate-'));
const file = join(home, 'a.token');
beforeAll(() => {
  const data = join(home, '.local', 'share', 'millrace');
  mkdirSync(data, { recursive: true });
  writeFileSync(join(data, 'queue.token'), 'mr_owner\n');
  writeFileSync(file, 'mr_file\n');
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const env = { HOME: home };

test('a flag comes before a variable, and that before where servers usually are', () => {
  const both = { ...env, MILLRACE_QUEUE_URL: 'http://b:1/', MILLRACE_QUEUE_TOKEN: 'mr_env' };
  expect(locateQueue({}, env).url).toBe('http://127.0.0.1:8081');
  expect(locateQueue({}, both)).toEqual({ url: 'http://b:1', token: 'mr_env' });
  expect(locateQueue({ url: 'https://a/queue/', tokenFile: file }, both)).toEqual({
    url: 'https://a/queue',
    token: 'mr_file',
  });
});

test('the address that a running `ctl up` left is used, and that of a dead one is not', () => {
  const left = join(home, '.local', 'share', 'millrace', 'queue.url');
  writeFileSync(left, `http://127.0.0.1:4711\n${process.pid}\n`);
  expect(locateQueue({}, env).url).toBe('http://127.0.0.1:4711');
  expect(locateQueue({ url: 'http://a' }, env).url).toBe('http://a');
  for (const pid of [2 ** 30, 'x', '']) {
    writeFileSync(left, `http://127.0.0.1:4711\n${pid}\n`);
    expect(locateQueue({}, env).url).toBe('http://127.0.0.1:8081');
  }
  rmSync(left);
});

test('metrics: where `ctl up` has them, or the default next to a default server', () => {
  const left = join(home, '.local', 'share', 'millrace', 'queue.url');
  const moved = 'http://127.0.0.1:4711';
  writeFileSync(left, `${moved}\n${process.pid}\nhttp://127.0.0.1:4713\n`);
  expect(locateMetrics(moved, env)).toBe('http://127.0.0.1:4713');
  expect(locateMetrics('http://127.0.0.1:8081', env)).toBe('http://127.0.0.1:9464');
  expect(locateMetrics(moved.replace('127.0.0.1', 'localhost'), env)).toBe('http://127.0.0.1:4713');
  expect(locateMetrics('http://localhost:8081', env)).toBe('http://127.0.0.1:9464');
  expect(locateMetrics('http://localhost.example:8081', env)).toBeUndefined();
  expect(locateMetrics('http://10.0.0.1:8081', env)).toBeUndefined();
  // A `ctl up` of an older version.
  writeFileSync(left, `${moved}\n${process.pid}\n`);
  expect(locateMetrics(moved, env)).toBeUndefined();
  rmSync(left);
});

test('a named data directory locates the queue and token of its own `ctl up`', () => {
  const data = join(home, 'elsewhere');
  mkdirSync(data);
  writeFileSync(join(data, 'queue.token'), 'mr_elsewhere\n');
  const other = { ...env, MILLRACE_QUEUE_URL: 'http://b:1/' };
  expect(() => locateQueue({ data }, other)).toThrow(`no queue is running on the data in ${data}`);
  writeFileSync(join(data, 'queue.url'), `http://127.0.0.1:4712\n${process.pid}\n`);
  expect(locateQueue({ data }, other)).toEqual({
    url: 'http://127.0.0.1:4712',
    token: 'mr_elsewhere',
  });
});

test('the gRPC address is that of the `ctl up` which runs the queue', () => {
  const data = mkdtempSync(join(home, 'grpc-'));
  const here = { ...env, MILLRACE_DATA_DIR: data };
  const lines = ['http://127.0.0.1:4713', process.pid, 'http://127.0.0.1:1', 'grpc://127.0.0.1:2'];
  writeFileSync(join(data, 'queue.url'), `${lines.join('\n')}\n`);
  expect(locateGrpc('http://127.0.0.1:4713', here)).toBe('grpc://127.0.0.1:2');
  expect(locateGrpc('http://127.0.0.1:8081', here)).toBeUndefined();
});

test("the owner's token is found for a server of this machine, and sent to no other", () => {
  expect(locateQueue({}, env).token).toBe('mr_owner');
  expect(locateQueue({ url: 'http://localhost:1' }, env).token).toBe('mr_owner');
  expect(locateQueue({ url: 'http://[::1]:1' }, env).token).toBe('mr_owner');
  expect(locateQueue({ url: 'http://10.0.0.1:8081' }, env).token).toBeUndefined();
  expect(locateQueue({ url: 'http://127.0.0.1.example.org' }, env).token).toBeUndefined();
  expect(locateQueue({}, { HOME: '/nonexistent' }).token).toBeUndefined();
});

test.each([
  [{ url: 'queue.example.org' }, {}, '--url must be a URL'],
  [{ url: 'http://u:p@queue' }, {}, '--url must be a URL'],
  [{}, { MILLRACE_QUEUE_URL: 'ftp://x' }, '$MILLRACE_QUEUE_URL must be a URL'],
  [{}, { MILLRACE_QUEUE_TOKEN: 'a b' }, '$MILLRACE_QUEUE_TOKEN must contain one bearer token'],
  [{ tokenFile: '/dev/null' }, {}, '/dev/null must contain one bearer token and is empty'],
])('%j %j is refused', (flags, more, message) => {
  expect(() => locateQueue(flags, { ...env, ...more })).toThrow(UsageError);
  expect(() => locateQueue(flags, { ...env, ...more })).toThrow(message);
});

test('a token file that is not there is refused by its name', () => {
  const found = () => locateQueue({ tokenFile: '/no/such' }, env);
  expect(found).toThrow('--token-file /no/such: no such file or directory.');
});
