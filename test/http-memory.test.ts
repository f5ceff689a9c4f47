import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSecret } from '@millrace/kit/tokens';
import { afterEach, expect, test } from 'vitest';

/*
 * Each server as a process of its own with its default settings, and clients that make it hold
 * memory. Without limits these attacks hold 1 to 2.7 GB.
 */
const maxResidentMb = 400;
const token = 'token-of-the-attacker';
const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).toReversed()) step();
});

const anyPort = '127.0.0.1:0';
const argumentsOf: Record<string, (folder: string) => string[]> = {
  queue: (folder) => {
    const grants = [{ queue: '*', role: 'admin' }];
    const tokens = [{ id: 'a', principal: 'a', token_sha256: hashSecret(token), grants }];
    const file = join(folder, 'tokens.yaml');
    writeFileSync(file, JSON.stringify({ tokens }));
    const listeners = ['--listen', anyPort, '--metrics-listen', anyPort];
    return [...listeners, '--data', join(folder, 'data'), '--tokens-file', file];
  },
  daemon: (folder) => ['--listen', anyPort, '--data-dir', join(folder, 'data'), '--token', token],
  db: (folder) => {
    const listeners = ['--http', anyPort, '--grpc', anyPort];
    return [...listeners, '--data', join(folder, 'data')];
  },
};

async function startServer(component: string) {
  const folder = mkdtempSync(join(tmpdir(), 'mr-memory-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const flags = argumentsOf[component]!(folder);
  const child = spawn(process.execPath, ['bin/ctl', component, 'serve', ...flags], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env['PATH'], HOME: folder },
  });
  undo.push(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  const found = () => /"listener":"http","url":"([^"]+)"/.exec(said)?.[1];
  await expect.poll(found, { timeout: 120_000 }).toBeDefined();
  // The database makes its key at the first start; the others are given a token.
  const keyFile = join(folder, 'data', 'db.key');
  const credential = component === 'db' ? readFileSync(keyFile, 'utf8').trim() : token;
  return { child, url: found()!, authorization: `Bearer ${credential}` };
}

function residentMb({ pid }: ChildProcess): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kilobytes) / 1024;
}

function open(url: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  undo.push(() => socket.destroy());
  return socket;
}

/** Peak memory of the server until `isOver`, and for two seconds more. */
async function peakMb(child: ChildProcess, isOver: () => boolean): Promise<number> {
  let peak = 0;
  for (let left = 20; left > 0;) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    peak = Math.max(peak, residentMb(child));
    if (isOver()) left--;
  }
  return peak;
}

const onLinux = existsSync('/proc/self/status');

const components: [string, string, number, number][] = [
  ['queue', '/v1/queues/mail/tasks:batch', 16 * 2 ** 20, 40],
  ['daemon', '/api/v1/spawn', 2 ** 20, 500],
  ['db', '/v1/c/records', 4 * 2 ** 20, 120],
];
for (const [component, path, size, count] of components) {
  const tags = component === 'queue' ? {} : { tags: 'campaign-process' };
  const title = `unfinished bodies: the ${component} keeps within its memory`;
  test.skipIf(!onLinux)(title, tags, () => holdBodies(component, path, size, count));
}

async function holdBodies(
  component: string,
  path: string,
  size: number,
  count: number,
): Promise<void> {
  const { child, url, authorization } = await startServer(component);
  let refused = 0;
  const body = Buffer.alloc(size - 1, 0x20);
  for (let n = 0; n < count; n++) {
    const socket = open(url);
    socket.on('data', (bytes) => (refused += bytes.includes('HTTP/1.1 429') ? 1 : 0));
    socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n`);
    socket.write(`Authorization: ${authorization}\r\n`);
    socket.write(`Content-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`);
    socket.write(body);
  }
  const maxHeld = (256 * 2 ** 20) / size;
  const peak = await peakMb(child, () => refused >= count - maxHeld);
  expect(peak).toBeLessThan(maxResidentMb);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
}

const tags = { tags: 'campaign-process' };
test.skipIf(!onLinux)('unread responses: the db keeps within its memory', tags, async () => {
  const { child, url, authorization } = await startServer('db');
  const record = { key: 'k', data: { text: 'x'.repeat(1_900_000) } };
  const headers = { 'content-type': 'application/json', authorization };
  const init = { method: 'POST', headers, body: JSON.stringify(record) };
  expect((await fetch(`${url}/v1/c/keys`, init)).status).toBe(200);
  const count = 300;
  let connected = 0;
  for (let n = 0; n < count; n++) {
    const socket = open(url).pause();
    socket.on('connect', () => connected++);
    const head = `Host: localhost\r\nAuthorization: ${authorization}\r\n\r\n`;
    socket.write(`GET /v1/c/keys/k HTTP/1.1\r\n${head}`.repeat(4));
  }
  const peak = await peakMb(child, () => connected === count);
  expect(peak).toBeLessThan(maxResidentMb);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});
