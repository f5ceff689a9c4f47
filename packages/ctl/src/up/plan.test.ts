import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllowlist } from '@millrace/kit/outbound';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Credentials } from './credentials.js';
import { parts } from './parts.js';
import { Plan, type Places } from './plan.js';
import { loadSettings, type UpOptions } from './settings.js';

let data = '';
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'ctl-up-plan-'));
});
afterEach(() => rmSync(data, { recursive: true, force: true }));

const credentials: Credentials = {
  ownerToken: 'mr_owner',
  daemonToken: 'mr_daemon',
  signingSecret: 'whsec_AAAA',
  isLetIn: true,
  notices: [],
};

interface PlanOptions {
  env?: Record<string, string>;
  addresses?: UpOptions;
  host?: string;
}

function planOf({ env = {}, addresses = {}, host = '127.0.0.1' }: PlanOptions = {}): Plan {
  const environment = { HOME: data, ...env };
  return new Plan({
    dataDir: data,
    env: environment,
    addresses,
    settings: loadSettings(data, addresses, environment),
    credentials,
    daemonAddress: { host, port: 4000 },
    queueGrpc: { host: '127.0.0.1', port: 8082 },
  });
}

const nowhere: Places = () => [];
const running: Places = (name) =>
  parts
    .find((part) => part.name === name)!
    .listeners.map((listener, at) => ({
      listener,
      url: `${listener === 'grpc' ? 'grpc' : 'http'}://127.0.0.1:${5000 + at}`,
    }));

/** What follows a flag, as often as it is given. */
function valuesOf(args: readonly string[], flag: string): string[] {
  return args.flatMap((arg, at) => (arg === flag ? [args[at + 1]!] : []));
}

test('at first a part listens where it was sent, and after a death where it was', () => {
  const plan = planOf({ addresses: { dbGrpc: '127.0.0.1:0', queueListen: '127.0.0.1:0' } });
  const db = (places: Places) => plan.commandFor('db', places).args;
  expect(valuesOf(db(nowhere), '--grpc')).toEqual(['127.0.0.1:0']);
  expect(valuesOf(db(nowhere), '--http')).toEqual([]);
  expect(valuesOf(db(running), '--grpc')).toEqual(['127.0.0.1:5000']);
  expect(valuesOf(db(running), '--http')).toEqual(['127.0.0.1:5001']);
  const queue = plan.commandFor('queue', running).args;
  expect(valuesOf(queue, '--listen')).toEqual(['127.0.0.1:5000']);
  expect(valuesOf(queue, '--metrics-listen')).toEqual(['127.0.0.1:5001']);
  expect(valuesOf(queue, '--grpc')).toEqual(['127.0.0.1:5002']);
  const first = plan.commandFor('queue', nowhere).args;
  expect(valuesOf(first, '--grpc')).toEqual(['127.0.0.1:8082']);
});

test('the daemon is reported of the others, and no secret is in a command line', () => {
  const { args, env } = planOf().commandFor('daemon', running);
  expect(valuesOf(args, '--queue-url')).toEqual(['http://127.0.0.1:5000']);
  expect(valuesOf(args, '--database-url')).toEqual(['http://127.0.0.1:5001']);
  expect(env).toMatchObject({
    MILLRACE_QUEUE_TOKEN: 'mr_daemon',
    MILLRACE_QUEUE_CALLBACK_SECRET: 'whsec_AAAA',
  });
  const commands = parts.flatMap(({ name }) => planOf().commandFor(name, running).args);
  expect(commands.join(' ')).not.toMatch(/mr_|whsec_/);
});

test('a key for the database is passed on, and what the config file says is left alone', () => {
  writeFileSync(join(data, 'db.key'), 'id.secret\n');
  expect(planOf().commandFor('daemon', running).env).toMatchObject({
    MILLRACE_DATABASE_API_KEY: 'id.secret',
  });
  mkdirSync(join(data, 'config', 'millrace'), { recursive: true });
  const said = 'queue: {url: http://10.0.0.9:8081, token: mr_mine}\n';
  writeFileSync(join(data, 'config', 'millrace', 'config.yaml'), said);
  const env = { XDG_CONFIG_HOME: join(data, 'config') };
  const command = planOf({ env }).commandFor('daemon', running);
  expect(command.args).not.toContain('--queue-url');
  expect(command.args).toContain('--database-url');
  expect(command.env).not.toHaveProperty('MILLRACE_QUEUE_TOKEN');
});

test('up: the key that the database made is passed on, and --no-auth to both', () => {
  mkdirSync(join(data, 'db'));
  writeFileSync(join(data, 'db', 'db.key'), 'made.secret\n');
  const guarded = planOf();
  expect(guarded.commandFor('daemon', running).env).toMatchObject({
    MILLRACE_DATABASE_API_KEY: 'made.secret',
  });
  expect(guarded.commandFor('daemon', running).args).not.toContain('--no-auth');
  const open = planOf({ addresses: { auth: false } });
  expect(open.commandFor('daemon', running).args).toContain('--no-auth');
  expect(open.commandFor('db', running).env).toMatchObject({ MILLRACE_DB_AUTH: 'none' });
});

test('up: no authentication is refused where others can reach the daemon', () => {
  expect(() => planOf({ addresses: { auth: false, listen: '0.0.0.0:0' } })).toThrow(
    /others can reach, and auth is none/,
  );
});

test('where the command line finds another queue is not for the daemon', () => {
  const env = { MILLRACE_QUEUE_URL: 'http://10.0.0.9:1' };
  const command = planOf({ env }).commandFor('daemon', running);
  expect(command.env).not.toHaveProperty('MILLRACE_QUEUE_URL');
  expect(valuesOf(command.args, '--queue-url')).toEqual(['http://127.0.0.1:5000']);
});

test.for([
  ['127.0.0.1', 'http://127.0.0.1:4000/api/v1/queue/callback'],
  ['0.0.0.0', 'http://127.0.0.1:4000/api/v1/queue/callback'],
  ['::1', 'http://[::1]:4000/api/v1/queue/callback'],
  ['localhost', 'http://localhost:4000/api/v1/queue/callback'],
] as const)(
  'the queue may call a daemon at %s, and nothing else of this machine',
  ([host, url]) => {
    const plan = planOf({ host });
    expect(plan.callbackUrl).toBe(url);
    const { args } = plan.commandFor('queue', nowhere);
    const entries = valuesOf(args, '--extra-callback-allowlist').map(
      (text) => JSON.parse(text) as unknown,
    );
    const allowlist = parseAllowlist(entries);
    expect(allowlist.match(url)).toMatchObject({ allowed: true });
    expect(allowlist.match(url.replace('4000', '4001'))).toMatchObject({ allowed: false });
    expect(allowlist.match(url.replace('/callback', '/other'))).toMatchObject({ allowed: false });
  },
);

test('what the queue may call already, and its own files, stay', () => {
  writeFileSync(
    join(data, 'queue.yaml'),
    'tokens_file: t.yaml\nsecrets_file: s.yaml\ncallback_allowlist:\n' +
      '  - {scheme: https, host: "*.example.org"}\n',
  );
  const { args } = planOf().commandFor('queue', nowhere);
  expect(valuesOf(args, '--config')).toEqual([join(data, 'queue.yaml')]);
  expect(valuesOf(args, '--tokens-file')).toEqual([]);
  expect(valuesOf(args, '--secrets-file')).toEqual([]);
  expect(valuesOf(args, '--callback-allowlist')).toEqual([]);
  expect(valuesOf(args, '--extra-callback-allowlist')).toEqual([
    expect.stringContaining('/api/v1/queue/callback'),
  ]);
});
