import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addressFile, readOnlyTokenFile, tokenFile } from '@millrace/daemon/config';
import { UsageError } from '@millrace/kit/errors';
import { afterEach, expect, test } from 'vitest';
import { ApiClient } from './support/client.js';
import { startDaemon, type TestDaemon, type TestOptions } from './support/daemon.js';

const running: TestDaemon[] = [];
const directories: string[] = [];
afterEach(async () => {
  for (const daemon of running.splice(0)) await daemon.dispose();
  for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true });
});

async function start(options: TestOptions = {}): Promise<TestDaemon> {
  const daemon = await startDaemon(options);
  running.push(daemon);
  return daemon;
}

function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'mr-access-'));
  directories.push(home);
  return home;
}

const path = '/api/v1/backends';
const write = { method: 'POST', path: '/api/v1/backends/rescan' };
const bearer = (value: string) => ({ authorization: `Bearer ${value}` });

const token = 'a-token-of-sixteen';

test.each([
  ['with a token', { token }],
  ['without one', { auth: 'none' }],
])('a loopback listener answers to loopback names alone, %s', async (_, flags) => {
  const { api: nobody, url } = await start({ flags });
  const api = nobody.withHeaders(bearer(token));
  const { port } = new URL(url);
  for (const host of [
    `127.0.0.1:${port}`,
    `localhost:${port}`,
    `LOCALHOST:${port}`,
    'localhost',
    `[::1]:${port}`,
    `mill.localhost:${port}`,
    '127.8.9.10',
  ]) {
    expect([host, (await api.send({ path, headers: { host } })).status]).toEqual([host, 200]);
  }
  for (const host of [
    `evil.example:${port}`,
    'localhost.evil.example',
    `127.0.0.1.evil.example:${port}`,
    `192.168.1.5:${port}`,
    '0.0.0.0',
    'evil.example:127.0.0.1',
  ]) {
    expect([host, (await api.send({ path, headers: { host } })).status]).toEqual([host, 403]);
    await api.refused({ path: '/healthz', headers: { host } }, 403, 'FORBIDDEN');
  }
});

test('a request without a Host is not served', async () => {
  const { url } = await start();
  const { port } = new URL(url);
  for (const head of ['HTTP/1.0', 'HTTP/1.1', 'HTTP/1.1\r\nHost:', 'HTTP/1.1\r\nHost: :80']) {
    const answer = await rawRequest(Number(port), `GET ${path} ${head}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 40[03] /);
    expect(answer).not.toContain('binary_path');
  }
});

function rawRequest(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.end(text));
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

test('a page of another site is refused, with and without a token', async () => {
  const open = await start();
  const closed = await start({ flags: { token: 'a-token-of-sixteen' } });
  for (const { api, url } of [open, closed]) {
    const { port } = new URL(url);
    const mine = api.withHeaders(bearer('a-token-of-sixteen'));
    for (const origin of [
      'https://evil.example',
      'http://evil.example:8765',
      'null',
      'http://localhost:1',
      `http://localhost.evil.example:${port}`,
      `http://evil.example@127.0.0.1:${port}`,
      'file://',
      'chrome-extension://abcdef',
      '',
    ]) {
      await mine.refused({ ...write, headers: { origin } }, 403, 'FORBIDDEN');
      await mine.refused({ path: '/api/docs', headers: { origin } }, 403, 'FORBIDDEN');
    }
    const crossSite = { 'sec-fetch-site': 'cross-site' };
    await mine.refused({ ...write, headers: crossSite }, 403, 'FORBIDDEN');
    await mine.refused({ path, headers: crossSite }, 403, 'FORBIDDEN');
    for (const headers of [
      { origin: `http://127.0.0.1:${port}` },
      { origin: `http://localhost:${port}` },
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
    ]) {
      expect((await mine.send({ ...write, headers })).status).toBe(200);
    }
  }
});

test('a page served under the name that it asks for is no stranger, if it has the token', async () => {
  const { url } = await start({ flags: { listen: '0.0.0.0:0', token } });
  const api = new ApiClient(`http://127.0.0.1:${new URL(url).port}`);
  const headers = { host: 'mill.lan:8765', origin: 'http://mill.lan:8765' };
  await api.refused({ path, headers }, 401, 'UNAUTHENTICATED');
  const reply = await api.send({ path, headers: { ...headers, ...bearer('a-token-of-sixteen') } });
  expect(reply.status).toBe(200);
});

test('a write with a body needs JSON, one without needs nothing', async () => {
  const { api } = await start();
  const put = { method: 'PUT', path: '/api/v1/backends/thinking-mode' };
  const body = '{"mode":"local_only"}';
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
    const headers = { 'content-type': type };
    await api.refused({ ...put, body, headers }, 415, 'UNSUPPORTED_MEDIA_TYPE');
  }
  await api.refused({ ...put, body }, 415, 'UNSUPPORTED_MEDIA_TYPE');
  expect((await api.send(write)).status).toBe(200);
  expect((await api.registry()).settings.internal_thinking_mode).toBe('free_plus_local');
});

test('a daemon that others can reach needs a token to start', async () => {
  for (const listen of ['0.0.0.0:0', '[::]:0', '192.168.77.1:0']) {
    const home = newHome();
    const started = startDaemon({ home, flags: { listen, auth: 'token' } });
    await expect(started).rejects.toThrow(UsageError);
    await expect(started).rejects.toThrow('ctl daemon token generate');
    const open = startDaemon({ home, flags: { listen, auth: 'none', token } });
    await expect(open).rejects.toThrow(/listen is .*, and auth is none/);
  }
  const { api, url, dataDir } = await start({
    flags: { listen: '0.0.0.0:0', token: 'a-token-of-sixteen' },
  });
  const { port } = new URL(url);
  expect(readFileSync(addressFile(dataDir), 'utf8')).toBe(`http://127.0.0.1:${port}\n`);
  const reached = new (api.constructor as any)(`http://127.0.0.1:${port}`);
  await reached.refused({ path }, 401, 'UNAUTHENTICATED');
  expect((await reached.send({ path: '/healthz', headers: { host: 'mill.lan' } })).status).toBe(
    200,
  );
});

test('health and the documentation need no token, everything else does', async () => {
  const { api } = await start({ flags: { token: 'a-token-of-sixteen' } });
  for (const free of ['/healthz', '/api/docs', '/api/docs/openapi.yaml']) {
    expect((await api.send({ path: free })).status).toBe(200);
  }
  for (const headers of [
    {},
    bearer('a-token-of-sixteem'),
    bearer(''),
    { authorization: 'Basic a-token-of-sixteen' },
    { authorization: 'a-token-of-sixteen' },
  ]) {
    await api.refused({ path, headers }, 401, 'UNAUTHENTICATED');
  }
  expect((await api.send({ path, headers: bearer('a-token-of-sixteen') })).status).toBe(200);
});

test('token: the first start makes one, for its owner alone, and keeps it', async () => {
  const home = newHome();
  const flags = { auth: 'token' };
  const first = await startDaemon({ home, flags });
  const file = join(home, 'data', 'daemon.token');
  const made = readFileSync(file, 'utf8').trim();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await first.api.refused({ path }, 401, 'UNAUTHENTICATED');
  const spawn = { method: 'POST', path: '/api/v1/spawn', body: { prompt: 'x' } };
  await first.api.refused(spawn, 401, 'UNAUTHENTICATED');
  const proxied = '/api/v1/proxy/queue/v1/admin/queues';
  await first.api.refused({ path: proxied }, 401, 'UNAUTHENTICATED');
  expect((await first.api.send({ path: '/' })).status).not.toBe(401);
  expect((await first.api.send({ path, headers: bearer(made) })).status).toBe(200);
  await first.stop();
  const second = await start({ home, flags });
  expect(readFileSync(file, 'utf8').trim()).toBe(made);
  expect((await second.api.send({ path, headers: bearer(made) })).status).toBe(200);
});

test('token: one that the settings give is not written to a file', async () => {
  const { dataDir } = await start({ flags: { token } });
  expect(existsSync(tokenFile(dataDir))).toBe(false);
});

test('token: the file of version 0.1 stays in force', async () => {
  const home = newHome();
  mkdirSync(join(home, 'data'));
  writeFileSync(join(home, 'data', 'token'), `${token}\n`, { mode: 0o600 });
  const { api } = await start({ home, flags: { auth: 'token' } });
  await api.refused({ path }, 401, 'UNAUTHENTICATED');
  expect((await api.send({ path, headers: bearer(token) })).status).toBe(200);
  expect(existsSync(join(home, 'data', 'token'))).toBe(false);
});

test('a read-only token reads and changes nothing', async () => {
  const { api } = await start({
    flags: { token: 'a-token-of-sixteen', 'read-only-token': 'another-one-of-20' },
  });
  const reader = api.withHeaders(bearer('another-one-of-20'));
  const before = await reader.registry();
  await reader.refused(write, 403, 'FORBIDDEN');
  for (const [method, at, body] of [
    ['PATCH', '/api/v1/backends/claude', { tier: 'free' }],
    ['PUT', '/api/v1/backends/thinking-mode', { mode: 'local_only' }],
    ['PUT', '/api/v1/backends/default', { id: 'claude' }],
    ['POST', '/api/v1/think', { prompt: 'x' }],
    // The token is looked at before the body is.
    ['POST', '/api/v1/think', { nope: 'x' }],
  ] as const) {
    await reader.refused({ method, path: at, body }, 403, 'FORBIDDEN');
  }
  expect(await reader.registry()).toEqual(before);
});

test('config: a read-only caller does not see the path of the webhook', async () => {
  const flags = { token, 'read-only-token': 'another-one-of-20' };
  const url = 'https://hooks.example.org/services/T0/B0/secret';
  const { api } = await start({ flags: { ...flags, 'notify-webhook-url': url } });
  const shown = async (with_: string) => {
    const { entries } = await api.withHeaders(bearer(with_)).ok('GET', '/api/v1/config');
    return entries.find(({ key }: { key: string }) => key === 'notify.webhook_url').value;
  };
  expect(await shown(token)).toBe(url);
  expect(await shown('another-one-of-20')).toBe('https://hooks.example.org/********');
});

test('throttle: wrong tokens have to wait, and the right one always passes', async () => {
  const { api } = await start({ flags: { token } });
  const { guesses, reply } = await api.guessTokens();
  expect(guesses).toBeGreaterThanOrEqual(10);
  expect(reply.json).toMatchObject({ status: 429, code: 'TOO_MANY_ATTEMPTS' });
  const retryAfter = Number(reply.headers['retry-after']);
  expect(retryAfter).toBeGreaterThanOrEqual(1);
  expect(retryAfter).toBeLessThanOrEqual(6);
  expect((await api.send({ path, headers: bearer(token) })).status).toBe(200);
  expect((await api.send({ path: '/healthz' })).status).toBe(200);
});

test('callers without any token are not slowed down', async () => {
  const { api } = await start({ flags: { token: 'a-token-of-sixteen' } });
  for (let n = 0; n < 15; n++) await api.refused({ path }, 401, 'UNAUTHENTICATED');
  expect((await api.send({ path, headers: bearer('a-token-of-sixteen') })).status).toBe(200);
});

test('a token file counts from the next request on, and its loss does not open the daemon', async () => {
  const { api, dataDir, log } = await start({ flags: { auth: 'token' } });
  writeFileSync(tokenFile(dataDir), 'first-token-of-the-file\n', { mode: 0o600 });
  await api.refused({ path }, 401, 'UNAUTHENTICATED');
  const status = async (value: string) => (await api.send({ path, headers: bearer(value) })).status;
  expect(await status('first-token-of-the-file')).toBe(200);
  writeFileSync(tokenFile(dataDir), 'second-token-of-the-file\n');
  writeFileSync(readOnlyTokenFile(dataDir), 'reading-token-of-the-file\n', { mode: 0o600 });
  expect(await status('first-token-of-the-file')).toBe(401);
  expect(await status('second-token-of-the-file')).toBe(200);
  expect(await status('reading-token-of-the-file')).toBe(200);
  rmSync(tokenFile(dataDir));
  await api.refused({ path }, 401, 'UNAUTHENTICATED');
  expect(await status('second-token-of-the-file')).toBe(200);
  writeFileSync(tokenFile(dataDir), '');
  expect(await status('second-token-of-the-file')).toBe(200);
  const failures = log.lines.filter(({ level }) => level === 'error');
  expect(failures.map(({ message }) => message)).toEqual([
    'failed to reload token',
    'failed to reload token',
  ]);
  expect(failures.map(({ fields }) => fields['reason'])).toEqual([
    expect.stringContaining('the file was removed') as string,
    expect.stringContaining('is empty') as string,
  ]);
  log.lines.splice(0);
});

test('the environment overrides the token file, and no token is ever shown', async () => {
  const home = newHome();
  mkdirSync(join(home, 'data'));
  writeFileSync(tokenFile(join(home, 'data')), 'token-of-the-file-here');
  const { api, log } = await start({
    home,
    flags: { auth: 'token' },
    environment: { MILLRACE_TOKEN: 'token-of-the-environment' },
  });
  await api.refused({ path, headers: bearer('token-of-the-file-here') }, 401, 'UNAUTHENTICATED');
  const mine = api.withHeaders(bearer('token-of-the-environment'));
  const reply = await mine.send({ path: '/api/v1/config' });
  const entry = reply.json.entries.find(({ key }: { key: string }) => key === 'token');
  expect(entry).toMatchObject({
    key: 'token',
    value: '********',
    source: 'environment',
    origin: 'MILLRACE_TOKEN',
    secret: true,
  });
  expect(reply.text + JSON.stringify(log.lines)).not.toMatch(/token-of-the-/);
});

test.each([
  ['two words', /letters, digits/],
  ['', /is empty/],
])('a token file with %j is refused at the start', async (text, message) => {
  const home = newHome();
  mkdirSync(join(home, 'data'));
  writeFileSync(tokenFile(join(home, 'data')), text);
  const started = startDaemon({ home, flags: { auth: 'token' } });
  await expect(started).rejects.toThrow(UsageError);
  await expect(started).rejects.toThrow(message);
});

test('one token cannot be both', async () => {
  const flags = { token: 'a-token-of-sixteen', 'read-only-token': 'a-token-of-sixteen' };
  await expect(startDaemon({ home: newHome(), flags })).rejects.toThrow('create another one');
});

test('what the daemon keeps is for its owner alone', async () => {
  const home = newHome();
  mkdirSync(join(home, 'data'));
  chmodSync(join(home, 'data'), 0o755);
  const { dataDir } = await start({ home });
  const mode = (file: string) => (statSync(file).mode & 0o777).toString(8);
  expect(mode(dataDir)).toBe('700');
  expect(mode(join(dataDir, 'daemon'))).toBe('700');
  expect(mode(join(dataDir, 'think'))).toBe('700');
  expect(mode(addressFile(dataDir))).toBe('600');
});
