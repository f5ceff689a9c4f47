import { readFileSync } from 'node:fs';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Client } from '../../src/storage/postgres/connections.js';
import { openPostgresStore } from '../../src/storage/postgres/open.js';
import type { PostgresStore } from '../../src/storage/postgres/postgres-store.js';
import { someConfig } from '../task-store/fixture.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let store: PostgresStore;
let asPlainRole: string;
const role = 'plain_submitter';
beforeAll(async () => {
  postgres = await startPostgres();
  const url = await postgres.database('submits');
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  store = await openPostgresStore(url, world);
  await postgres.sql(
    url,
    `DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '${role}') THEN
      CREATE ROLE ${role} LOGIN PASSWORD 'x'; END IF; END $$`,
  );
  await postgres.sql(
    url,
    `GRANT EXECUTE ON FUNCTION millrace.submit(text, text, jsonb, jsonb) TO ${role}`,
  );
  const plain = new URL(url);
  plain.username = role;
  plain.password = 'x';
  asPlainRole = plain.href;
  const put = (queue: string, limits = {}) => {
    const config = { ...someConfig(), limits: { ...someConfig().limits, ...limits } };
    return store.putQueue({ queue, config, now: systemClock.now(), by: 'ada' });
  };
  await put('mail');
  await put('small', { max_payload_bytes: 20, max_pending: 1 });
});
afterAll(async () => {
  await store.close();
  await postgres.remove();
});

async function connect(): Promise<Client> {
  const client = new Client(asPlainRole);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

async function submit(client: Client, ...args: unknown[]): Promise<string> {
  const places = args.map((_, i) => `$${i + 1}${['', '', '::jsonb', '::jsonb'][i]}`).join(', ');
  const values = args.map((arg, i) => (i > 1 && arg !== null ? JSON.stringify(arg) : arg));
  const { rows } = await client.query(`SELECT millrace.submit(${places}) AS id`, values);
  return (rows[0] as { id: string }).id;
}

const claim = (queue = 'mail', now = systemClock.now()) =>
  store.claimDue({
    queue,
    limit: 10,
    now,
    nodeId: 'n',
    leaseExpiresAt: now + 60_000,
    newToken: () => systemRandom.ulid(now),
    maxInFlight: 1_000,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });

test('submit: is invisible until the transaction commits, and wakes the servers then', async () => {
  const client = await connect();
  let stop = () => {};
  const woken = new Promise<string>((resolve) => (stop = store.onWork(resolve)));
  onTestFinished(() => stop());
  await client.query('BEGIN');
  const id = await submit(client, 'mail', 'mail.send', { to: 'ada' });
  expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  expect(await store.getTask(id)).toBeUndefined();
  expect(await claim()).toEqual([]);
  await client.query('COMMIT');
  expect(await woken).toBe('mail');
  const [task] = await claim();
  expect(task).toMatchObject({
    id,
    handlerRef: 'mail.send',
    payloadContentType: 'application/json',
  });
  expect(JSON.parse(Buffer.from(task!.payload).toString())).toEqual({ to: 'ada' });
  expect(task!.submittedBy).toBe(`postgres:${role}`);
  expect(await store.counts('mail')).toMatchObject({ pending: 0, inFlight: 1 });
});

test('submit: a transaction that is rolled back leaves nothing', async () => {
  const client = await connect();
  await client.query('BEGIN');
  const id = await submit(client, 'mail', 'mail.send', {}, { unique_key: 'gone' });
  await client.query('ROLLBACK');
  expect(await store.getTask(id)).toBeUndefined();
  const again = await submit(client, 'mail', 'mail.send', {}, { unique_key: 'gone' });
  expect((await claim()).map((task) => task.id)).toEqual([again]);
});

test('submit: takes the options of a task', async () => {
  const client = await connect();
  const id = systemRandom.ulid(systemClock.now());
  const options = {
    id: id.toLowerCase(),
    delay_ms: 60_000,
    priority: 7,
    group_key: 'g',
    headers: { 'X-Tenant': 'acme' },
    expires_at: '2999-01-31T08:00:00Z',
    max_attempts: 3,
    backoff: { kind: 'fixed', ms: 50, jitter: 0.5 },
    timeout_ms: 1_000,
    retain_ms: 5_000,
    labels: ['gpu'],
  };
  expect(await submit(client, 'mail', 'a@v2', null, options)).toBe(id);
  expect(await submit(client, 'mail', 'other', null, { id })).toBe(id);
  expect(await store.getTask(id)).toMatchObject({
    priority: 7,
    groupKey: 'g',
    headers: { 'X-Tenant': 'acme' },
    status: 'PENDING',
    options: {
      maxAttempts: 3,
      backoff: { kind: 'fixed', ms: 50, jitter: 0.5 },
      timeoutMs: 1_000,
      retainMs: 5_000,
      labels: ['gpu'],
    },
  });
  const key = { unique_key: 'k', unique_for_ms: 60_000 };
  const first = await submit(client, 'mail', 'a', {}, key);
  expect(await submit(client, 'mail', 'a', {}, key)).toBe(first);
});

test.each([
  ['QUEUE_NOT_FOUND', ['nope', 'a']],
  ['INVALID_TASK', ['mail', '-bad']],
  ['INVALID_TASK', ['mail', 'a', {}, { priority: 10 }]],
  ['INVALID_TASK', ['mail', 'a', {}, { priority: 'high' }]],
  ['INVALID_TASK', ['mail', 'a', {}, { colour: 'red' }]],
  ['INVALID_TASK', ['mail', 'a', {}, { run_at: 'tomorrow' }]],
  ['INVALID_TASK', ['mail', 'a', {}, { run_at: '2999-02-31T08:00:00Z' }]],
  ['INVALID_TASK', ['mail', 'a', {}, { expires_at: '2001-01-31T08:00:00Z' }]],
  ['INVALID_TASK', ['mail', 'a', {}, { id: 'x' }]],
  ['INVALID_TASK', ['mail', 'a', {}, { backoff: { kind: 'slow', ms: 1 } }]],
  ['INVALID_TASK', ['mail', 'a', {}, { labels: Array.from({ length: 11 }, () => 'l') }]],
  ['INVALID_TASK', ['mail', 'a', {}, { unique_for_ms: 5 }]],
  ['INVALID_TASK', ['mail', 'a', {}, []]],
  ['PAYLOAD_TOO_LARGE', ['small', 'a', { text: 'x'.repeat(50) }]],
])('submit: refuses with %s: %j', async (code, args) => {
  const client = await connect();
  await expect(submit(client, ...args)).rejects.toThrow(code);
});

test('submit: a full queue takes no more', async () => {
  const client = await connect();
  await submit(client, 'small', 'a');
  await expect(submit(client, 'small', 'a')).rejects.toThrow('RATE_LIMITED');
});

test('a role with EXECUTE alone can do nothing else', async () => {
  const client = await connect();
  for (const text of [
    'SELECT * FROM millrace.tasks',
    'DELETE FROM millrace.live',
    `SELECT millrace.new_ulid(1)`,
    'CREATE TABLE millrace.mine (a integer)',
  ]) {
    await expect(client.query(text)).rejects.toThrow('permission denied');
  }
});

test('the example of the documentation runs', async () => {
  const page = new URL('../../../../docs/how-to/run-the-queue-on-postgresql.md', import.meta.url);
  const text = readFileSync(page, 'utf8');
  const [, example] = /## Submit in your own transaction[^]*?```text\n([^]*?)```/.exec(text) ?? [];
  const client = await connect();
  await client.query('CREATE TEMP TABLE orders (id integer)');
  const results = (await client.query(example!)) as unknown as { rows: { submit?: string }[] }[];
  const id = results.flatMap(({ rows }) => rows.map(({ submit }) => submit)).find(Boolean)!;
  expect(await store.getTask(id)).toMatchObject({ queue: 'mail', uniqueKey: 'order-4711' });
});
