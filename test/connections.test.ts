import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSecret } from '@millrace/kit/tokens';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';

/*
 * Each server as a process of its own with its default settings: peers that hold as many
 * connections as they can must lock out neither other users nor health checks.
 */
const patience = { timeout: 120_000, interval: 200 };
const anyPort = '127.0.0.1:0';
const undo: (() => void)[] = [];
afterAll(() => {
  for (const step of undo.splice(0).toReversed()) step();
});

interface Component {
  flags(folder: string): string[];
  /** Credentials of two users. */
  greedy: string;
  other: string;
  /** What the greedy user holds open, and what the other one asks for. */
  poll: string;
  path: string;
  /** The listener with metrics; the daemon has none and logs alone. */
  metrics?: string;
  prepare?(url: string): Promise<void>;
}

const greedyToken = `mrq_${'g'.repeat(40)}`;
const otherToken = `mrq_${'o'.repeat(40)}`;
const bearer = (token: string) => `Authorization: Bearer ${token}`;
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const request = (line: string, headers: readonly string[], body = '') =>
  [`${line} HTTP/1.1`, 'Host: localhost', ...headers, `Content-Length: ${body.length}`]
    .concat('', body)
    .join('\r\n');

const json = 'Content-Type: application/json';
const claim = JSON.stringify({ worker: 'w', limit: 1, wait_ms: 30_000, lease_ms: 60_000 });

const components: Record<string, Component> = {
  queue: {
    flags: (folder) => {
      const grants = [{ queue: '*', role: 'admin' }];
      const tokens = [greedyToken, otherToken].map((token, n) => ({
        id: `t${n}`,
        principal: `p${n}`,
        token_sha256: hashSecret(token),
        grants,
      }));
      const file = join(folder, 'tokens.yaml');
      writeFileSync(file, JSON.stringify({ tokens }), { mode: 0o600 });
      const listeners = ['--listen', anyPort, '--metrics-listen', anyPort];
      return [...listeners, '--data', join(folder, 'data'), '--tokens-file', file];
    },
    greedy: bearer(greedyToken),
    other: bearer(otherToken),
    poll: request('POST /v1/queues/work/tasks:claim', [bearer(greedyToken), json], claim),
    path: '/v1/admin/queues',
    metrics: 'metrics',
    prepare: async (url) => {
      const headers = {
        authorization: `Bearer ${greedyToken}`,
        'content-type': 'application/json',
      };
      const body = JSON.stringify({ callback: { protocol: 'pull' } });
      const answer = await fetch(`${url}/v1/admin/queues/work/config`, {
        method: 'PUT',
        headers,
        body,
      });
      expect(answer.ok, await answer.text()).toBe(true);
    },
  },
  daemon: {
    flags: (folder) => {
      const tokens = ['--token', greedyToken, '--read-only-token', otherToken];
      return ['--listen', anyPort, '--data-dir', join(folder, 'data'), ...tokens];
    },
    greedy: bearer(greedyToken),
    other: bearer(otherToken),
    poll: request('GET /api/v1/events', [bearer(greedyToken)]),
    path: '/api/v1/backends',
  },
  db: {
    flags: (folder) => {
      const scopes = [{ collections: '*', access: 'admin' }];
      const keys = ['greedy', 'other'].map((id) => ({ id, secret_sha256: sha256('s'), scopes }));
      const file = join(folder, 'keys.yaml');
      writeFileSync(file, JSON.stringify({ keys }), { mode: 0o600 });
      const listeners = ['--http', anyPort, '--grpc', anyPort];
      return [...listeners, '--data', join(folder, 'data'), '--keys-file', file];
    },
    greedy: 'x-api-key: greedy.s',
    other: 'x-api-key: other.s',
    // Waits for a commit that nobody makes.
    poll: request('GET /v1/c/keys/k?min_seq=99999', ['x-api-key: greedy.s', 'grpc-timeout: 300S']),
    path: '/v1/admin/replication',
    metrics: 'http',
  },
};

async function start(name: string) {
  const component = components[name]!;
  const folder = mkdtempSync(join(tmpdir(), 'mr-connections-'));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const args = ['bin/ctl', name, 'serve', ...component.flags(folder)];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env['PATH'], HOME: folder },
  });
  undo.push(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  const urlOf = (listener: string) =>
    new RegExp(`"listener":"${listener}","url":"([^"]+)"`).exec(said)?.[1] ?? '';
  await vi.waitFor(() => expect(urlOf('http')).not.toBe(''), patience);
  await component.prepare?.(urlOf('http'));
  const statusOf = async (path: string, header?: string) => {
    const [field, value] = header?.split(': ') ?? [];
    const headers = { connection: 'close', ...(field && { [field]: value! }) };
    return (await fetch(`${urlOf('http')}${path}`, { headers })).status;
  };
  return { component, urlOf, statusOf };
}

/** Opens connections in groups, so that none waits in the backlog of the listener. */
async function hold(url: string, count: number, first?: string): Promise<Socket[]> {
  const { hostname, port } = new URL(url.replace(/^grpc:/, 'http:'));
  const open = async () => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined).resume();
    onTestFinished(() => void socket.destroy());
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
    if (first !== undefined) socket.write(first);
    return socket;
  };
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const group = Math.min(20, count - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: group }, open))));
  }
  return sockets;
}

async function drops(url: string, header: string): Promise<string> {
  const [field, value] = header.split(': ');
  const answer = await fetch(`${url}/metrics`, { headers: { [field!]: value! } });
  return (await answer.text()).match(/^.*connections_dropped_total\{.*$/gm)?.join('\n') ?? '';
}

/** The gRPC status of a call with an empty message. */
const call = (url: string, path: string, headers = {}) =>
  new Promise<string>((resolve, reject) => {
    const session = connectHttp2(url.replace(/^grpc:/, 'http:'));
    session.on('error', reject);
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    const done = (fields: object) => {
      const status = (fields as Record<string, string | undefined>)['grpc-status'];
      if (status === undefined) return;
      session.destroy();
      resolve(status);
    };
    stream.on('response', done).on('trailers', done).on('error', reject).resume();
    stream.end(Buffer.alloc(5));
  });

for (const name of Object.keys(components)) {
  const tags = name === 'queue' ? {} : { tags: 'campaign-process' };
  describe(`connections: ${name}`, tags, () => testConnections(name));
}

function testConnections(name: string): void {
  let server: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    server = await start(name);
  });

  test('1,000 silent strangers lock out nobody, and are closed', async () => {
    const { component, urlOf, statusOf } = server;
    const strangers = await hold(urlOf('http'), 1_000);
    expect(await statusOf('/healthz')).toBe(200);
    expect(await statusOf(component.path, component.other)).toBe(200);
    const open = () => strangers.filter(({ closed }) => !closed).length;
    await expect.poll(open, patience).toBe(0);
    if (component.metrics === undefined) return;
    const counted = await drops(urlOf(component.metrics), component.other);
    expect(counted).toMatch(/listener="http",reason="silent"/);
    expect(counted).toMatch(/reason="unauthenticated"/);
  });

  test('999 long polls of one user leave room for another and for health', async () => {
    const { component, urlOf, statusOf } = server;
    await hold(urlOf('http'), 999, component.poll);
    for (let n = 0; n < 20; n++) {
      expect(await statusOf('/healthz')).toBe(200);
      expect(await statusOf(component.path, component.other)).toBe(200);
    }
  });

  if (name !== 'db') return;
  test('gRPC: 1,000 silent strangers lock out nobody', async () => {
    const { urlOf } = server;
    await hold(urlOf('grpc'), 1_000);
    const key = { 'x-api-key': 'other.s' };
    expect(await call(urlOf('grpc'), '/grpc.health.v1.Health/Check')).toBe('0');
    expect(await call(urlOf('grpc'), '/millrace.db.v1.Database/ReplicationStatus', key)).toBe('0');
  });
}
