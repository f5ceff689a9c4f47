import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tokenFile } from '@millrace/daemon/config';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startDaemon, type TestDaemon } from './support/daemon.js';

const path = '/api/v1/backends';
const write = { method: 'POST', path: '/api/v1/backends/rescan' };

let home: string;
let daemon: TestDaemon;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'mr-login-'));
  await startAgain();
});
afterEach(async () => {
  await daemon.dispose();
  rmSync(home, { recursive: true, force: true });
});

async function startAgain(listen = '127.0.0.1:0'): Promise<void> {
  daemon = await startDaemon({ home, flags: { auth: 'token', listen } });
}

const owner = () => {
  const token = readFileSync(tokenFile(daemon.dataDir), 'utf8').trim();
  return daemon.api.withHeaders({ authorization: `Bearer ${token}` });
};
const newCode = async (): Promise<string> => (await owner().ok('POST', '/api/v1/login-codes')).code;
const exchange = (code: string, headers: Record<string, string> = {}) => ({
  method: 'POST',
  path: '/api/v1/login',
  headers,
  body: { code },
});

/** A client with the cookie of a logged-in browser, and its Set-Cookie header. */
async function loggedIn() {
  const reply = await daemon.api.send(exchange(await newCode()));
  expect([reply.status, reply.text]).toEqual([200, reply.text]);
  const [setCookie = ''] = reply.headers['set-cookie'] as string[];
  return { setCookie, browser: daemon.api.withHeaders({ cookie: setCookie.split(';')[0]! }) };
}

test('login: a code is exchanged once for a cookie that stands for the token', async () => {
  const code = await newCode();
  const reply = await daemon.api.send(exchange(code));
  expect(reply.json).toMatchObject({ logged_in: true });
  const [setCookie = ''] = reply.headers['set-cookie'] as string[];
  expect(setCookie).toMatch(
    /^millrace_login_\d+=\w+; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Strict$/,
  );
  const browser = daemon.api.withHeaders({ cookie: `theme=dark; ${setCookie.split(';')[0]!}` });
  expect((await browser.send({ path })).status).toBe(200);
  expect((await browser.send(write)).status).toBe(200);
  await daemon.api.refused(exchange(code), 401, 'UNAUTHENTICATED');
});

test('login: only a holder of the token gets a code', async () => {
  const request = { method: 'POST', path: '/api/v1/login-codes' };
  await daemon.api.refused(request, 401, 'UNAUTHENTICATED');
  await daemon.api.refused(exchange('mr_guess'), 401, 'UNAUTHENTICATED');
});

test('login: guessing does not keep the right code out', async () => {
  const code = await newCode();
  for (let n = 0; n < 12; n++) await daemon.api.send(exchange(`guess-${n}`));
  await daemon.api.refused(exchange('guess'), 429, 'TOO_MANY_ATTEMPTS');
  expect((await daemon.api.send(exchange(code))).status).toBe(200);
});

test('login: pages of other origins get no cookie and no use of it', async () => {
  const foreign = [
    { origin: 'https://evil.example' },
    { origin: 'http://127.0.0.1:1' },
    { 'sec-fetch-site': 'cross-site' },
    { host: 'evil.example' },
  ];
  const code = await newCode();
  for (const headers of foreign) {
    await daemon.api.refused(exchange(code, headers as never), 403, 'FORBIDDEN');
  }
  const { browser } = await loggedIn();
  for (const headers of [...foreign, { 'sec-fetch-site': 'same-site' }]) {
    await browser.refused({ ...write, headers: headers as never }, 403, 'FORBIDDEN');
    await browser.refused({ path, headers: headers as never }, 403, 'FORBIDDEN');
  }
  const put = { method: 'PUT', path: '/api/v1/backends/thinking-mode' };
  const text = { body: '{"mode":"local_only"}', headers: { 'content-type': 'text/plain' } };
  await browser.refused({ ...put, ...text }, 415, 'UNSUPPORTED_MEDIA_TYPE');
  const origin = daemon.url;
  expect((await browser.send({ ...write, headers: { origin } })).status).toBe(200);
});

test('login: over HTTPS the cookie is for HTTPS alone', async () => {
  const host = new URL(daemon.url).host;
  const headers = { host, origin: `https://${host}` };
  const reply = await daemon.api.send(exchange(await newCode(), headers));
  expect((reply.headers['set-cookie'] as string[])[0]).toMatch(/; Secure$/);
});

test('login: it outlasts a restart and ends with the token', async () => {
  const { browser } = await loggedIn();
  const { url, dataDir } = daemon;
  const stored = join(dataDir, 'daemon-logins.json');
  expect(statSync(stored).mode & 0o777).toBe(0o600);
  const secret = /=(.+)$/.exec(String(browser.headers['cookie']))![1]!;
  expect(readFileSync(stored, 'utf8')).not.toContain(secret);
  await daemon.stop();
  await startAgain(new URL(url).host);
  expect((await browser.send({ path })).status).toBe(200);
  writeFileSync(tokenFile(dataDir), 'another-token-of-the-file\n');
  await browser.refused({ path }, 401, 'UNAUTHENTICATED');
});

test('logout: the cookie is removed and no longer works', async () => {
  const { browser } = await loggedIn();
  const other = await loggedIn();
  const reply = await browser.send({ method: 'POST', path: '/api/v1/logout' });
  expect(reply.json).toEqual({ logged_in: false, expires_at: null });
  expect((reply.headers['set-cookie'] as string[])[0]).toMatch(/^millrace_login_\d+=; .*Max-Age=0/);
  await browser.refused({ path }, 401, 'UNAUTHENTICATED');
  expect((await other.browser.send({ path })).status).toBe(200);
});
