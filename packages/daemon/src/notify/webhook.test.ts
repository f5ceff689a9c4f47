import { readFileSync, statSync } from 'node:fs';
import {
  webhookGuard,
  type Outbound,
  type OutboundOutcome,
  type OutboundRequest,
} from '@millrace/kit/outbound';
import { createOutbound } from '@millrace/wire/http1';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { expectSchema } from '../../test/support/client.js';
import { webhookSecretFile } from '../storage/data-files.js';
import { Questions } from '../questions/questions.js';
import { openNotify, type NotifySettings, type OpenNotify } from './notify.js';
import type { OutboxEntry, Alert } from './alert-store.js';
import { Receiver } from './receiver.test-support.js';
import { TestStore, until } from './notify.test-support.js';
import { Webhook } from './webhook.js';

let room: TestStore;
let receiver: Receiver;
let outbound: Outbound;
let open: OpenNotify | undefined;
let questions: Questions | undefined;
let calls = 0;

beforeEach(async () => {
  room = new TestStore();
  receiver = await Receiver.listen();
  outbound = createOutbound({ guard: webhookGuard, clock: room.clock });
});
afterEach(async () => {
  vi.useRealTimers();
  await open?.close();
  open = undefined;
  await outbound.close();
  await receiver.close();
  await room.dispose();
});

async function start(settings: Partial<NotifySettings> = {}): Promise<OpenNotify['notify']> {
  const { database } = await room.open();
  questions = await Questions.open({ ...room.world, database });
  open = await openNotify({
    ...room.world,
    settings: {
      enabled: false,
      webhook_enabled: true,
      webhook_url: receiver.url,
      stuck_after: 1_800_000,
      ...settings,
    },
    database,
    dataDir: room.dataDir,
    environment: {},
    outbound: { request: counted },
    sessions: room.sessions,
    questions,
  });
  return open.notify;
}

async function counted(request: OutboundRequest): Promise<OutboundOutcome> {
  calls++;
  try {
    return await outbound.request(request);
  } finally {
    calls--;
  }
}

async function stop(): Promise<void> {
  await open?.close();
  open = undefined;
  await room.closeStore();
}

const alert = (more: Partial<Alert> = {}): Alert => ({
  kind: 'waiting_for_input',
  severity: 'warning',
  title: 'docs waits for an answer',
  body: 'It asks whether it may run a command.',
  agentId: null,
  ...more,
});

/** Time goes by in small steps until it has come about, but not while a call is under way. */
const eventually = (check: () => unknown, stepMs = 1000) =>
  until(async () => {
    if (await check()) return true;
    if (calls === 0) room.clock.advance(stepMs);
    return false;
  });

const inOutbox = async () => (await room.open()).database.collection('outbox').count();

test('an alert of an agent that waits carries its question', async () => {
  await start();
  const { database } = await room.open();
  const session = room.sessions.add({ name: 'docs', status: 'working' });
  const { question } = await questions!.add(session.id, {
    kind: 'permission',
    title: 'Do you want to proceed?',
    body: 'make test',
    tool: 'execute',
    options: [{ id: '1', label: 'Yes', kind: 'allow_once' }],
  });
  room.sessions.set(session.id, { status: 'waiting_for_input' });
  await until(() => receiver.received.length === 1);
  const sent = JSON.parse(receiver.received[0]!.body) as Record<string, unknown>;
  expectSchema('WebhookNotification', sent);
  expect(sent).toMatchObject({ question_id: question.id, question });
  expect(await database.collection('notes').count()).toBe(1);
});

test('an alert is posted in the form of the contract, signed by Standard Webhooks', async () => {
  const notify = await start();
  const session = room.sessions.add({ name: 'docs', status: 'working' });
  await notify.raise(alert({ agentId: session.id }));
  await until(() => receiver.received.length === 1);
  const [{ headers, body, path }] = receiver.received as [(typeof receiver.received)[0]];
  const sent = JSON.parse(body) as Record<string, unknown>;
  expectSchema('WebhookNotification', sent);
  const [note] = await notify.list({ unread: true, limit: 10 });
  expect(sent).toEqual({
    text: 'docs waits for an answer\n\nIt asks whether it may run a command.',
    title: note!.title,
    body: note!.body,
    id: note!.id,
    kind: 'waiting_for_input',
    ts: note!.ts,
    severity: 'warning',
    agent: { id: session.id, name: 'docs', status: 'working' },
  });
  expect([path, headers['content-type'], headers['user-agent'], headers['webhook-id']]).toEqual([
    '/alerts',
    'application/json',
    'millrace-daemon',
    note!.id,
  ]);

  const secret = readFileSync(webhookSecretFile(room.dataDir), 'utf8').trim();
  vi.useFakeTimers({ toFake: ['Date'], now: room.clock.now() });
  const verifier = new Verifier(secret);
  const signed = headers as Record<string, string>;
  expect(verifier.verify(body, signed)).toEqual(sent);
  expect(() => verifier.verify(`${body} `, signed)).toThrow();
  await until(async () => (await inOutbox()) === 0);
});

test('the secret is made once, for its owner alone, unless one is given', async () => {
  await start();
  const file = webhookSecretFile(room.dataDir);
  const made = readFileSync(file, 'utf8');
  expect(made).toMatch(/^whsec_[A-Za-z0-9+/]{43}=\n$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await stop();

  const webhook_secret = `whsec_${Buffer.from('a key of their own').toString('base64')}`;
  const notify = await start({ webhook_secret });
  expect(readFileSync(file, 'utf8')).toBe(made);
  await notify.raise(alert());
  await until(() => receiver.received.length === 1);
  vi.useFakeTimers({ toFake: ['Date'], now: room.clock.now() });
  const { headers, body } = receiver.received[0]!;
  new Verifier(webhook_secret).verify(body, headers as Record<string, string>);
});

test.each(['hunter2', 'whsec_', 'whsec_not base64'])(
  'a secret such as %s is refused without being shown',
  async (webhook_secret) => {
    const starting = start({ webhook_secret });
    await expect(starting).rejects.toThrow(/^notify\.webhook_secret must be "whsec_" followed/);
    await expect(starting).rejects.not.toThrow(webhook_secret === 'whsec_' ? /^$/ : webhook_secret);
  },
);

test('an answer of 500 is tried again with the same id and body, and a new signature', async () => {
  receiver.answer = (response) =>
    response.writeHead(receiver.received.length < 3 ? 500 : 200).end();
  const notify = await start();
  await notify.raise(alert());
  await eventually(() => receiver.received.length === 3);
  const [first, , third] = receiver.received;
  expect([third!.body, third!.headers['webhook-id']]).toEqual([
    first!.body,
    first!.headers['webhook-id'],
  ]);
  expect(third!.headers['webhook-timestamp']).not.toBe(first!.headers['webhook-timestamp']);
  await until(async () => (await inOutbox()) === 0);
  room.clock.advance(86_400_000);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(receiver.received.length).toBe(3);
  expect(room.warnings).toEqual(['webhook delivery failed: the webhook responded with 500']);
});

test('a receiver that is down is not called for every alert that waits', async () => {
  receiver.answer = (response) => response.writeHead(502).end();
  const notify = await start();
  for (let index = 0; index < 20; index++) await notify.raise(alert({ title: `${index}` }));
  await until(() => room.warnings.length === 1);
  room.clock.advance(1_900);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(receiver.received.length).toBe(1);
  receiver.answer = (response) => response.writeHead(200).end();
  await eventually(async () => (await inOutbox()) === 0);
  expect([...new Set(receiver.titles)]).toEqual(Array.from({ length: 20 }, (_, i) => `${i}`));
});

test('a redirect is not followed', async () => {
  const other = await Receiver.listen();
  receiver.answer = (response) => response.writeHead(307, { location: other.url }).end();
  const notify = await start();
  await notify.raise(alert());
  await until(() => room.warnings.length === 1);
  expect(room.warnings[0]).toMatch(/responded with 307, and redirects are not followed/);
  expect([other.received.length, await inOutbox()]).toEqual([0, 1]);
  await other.close();
});

test('a receiver that never answers is left after 5 seconds, and tried again later', async () => {
  let isHanging = true;
  receiver.answer = (response) => (isHanging ? undefined : response.writeHead(200).end());
  const notify = await start();
  await notify.raise(alert());
  await until(() => receiver.received.length === 1);
  room.clock.advance(4_999);
  expect(room.warnings).toEqual([]);
  room.clock.advance(1);
  await until(() => room.warnings.length === 1);
  isHanging = false;
  await eventually(() => receiver.received.length === 2);
  await until(async () => (await inOutbox()) === 0);
});

test.each([
  'http://169.254.169.254/latest/meta-data',
  'http://[fe80::1]/',
  'http://[::ffff:169.254.169.254]/',
])('%s is refused, and said to be so at the start', async (webhook_url) => {
  const notify = await start({ webhook_url });
  expect(room.warnings).toEqual([expect.stringMatching(/^notify\.webhook_url cannot be called/)]);
  await notify.raise(alert());
  await until(() => room.warnings.length === 2);
  expect(room.warnings[1]).toMatch(/^webhook delivery failed: /);
  expect(await notify.list({ unread: true, limit: 10 })).toHaveLength(1);
});

test('a name that turns out to be link-local is refused when the call is made', async () => {
  await outbound.close();
  const resolved: string[] = [];
  outbound = createOutbound({
    guard: webhookGuard,
    clock: room.clock,
    resolver: async (host) => {
      resolved.push(host);
      return ['169.254.169.254'];
    },
  });
  const notify = await start({ webhook_url: 'http://metadata.test/' });
  await notify.raise(alert());
  await until(() => room.warnings.length === 1);
  expect([resolved, room.warnings[0]]).toEqual([
    ['metadata.test'],
    expect.stringContaining('169.254.169.254') as string,
  ]);
});

test('a restart keeps what was not sent, and sends it in its order', async () => {
  receiver.answer = (response) => response.writeHead(503).end();
  const notify = await start();
  for (const title of ['one', 'two', 'three']) await notify.raise(alert({ title }));
  await until(() => receiver.received.length >= 1);
  await stop();
  const before = receiver.received.length;
  receiver.answer = (response) => response.writeHead(200).end();
  await start();
  await until(async () => (await inOutbox()) === 0);
  expect(receiver.titles.slice(before)).toEqual(['one', 'two', 'three']);
});

test('a daemon that ends during a call sends the alert again', async () => {
  receiver.answer = () => undefined;
  const notify = await start();
  await notify.raise(alert());
  await until(() => receiver.received.length === 1);
  await stop();
  expect(room.warnings).toEqual([]);
  receiver.answer = (response) => response.writeHead(200).end();
  await start();
  await until(() => receiver.received.length === 2);
  const [first, second] = receiver.received;
  expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
});

test('one alert that is always refused keeps none of the others back', async () => {
  receiver.answer = (response, { body }) =>
    response.writeHead(body.includes('poison') ? 400 : 200).end();
  const notify = await start();
  await notify.raise(alert({ title: 'poison' }));
  await until(() => receiver.received.length === 1);
  await notify.raise(alert({ title: 'bread' }));
  await eventually(() => receiver.titles.includes('bread'));
  await until(async () => (await inOutbox()) === 1);
});

test('an alert that nobody takes for a day is given up, after ever longer waits', async () => {
  const entry: OutboxEntry = {
    id: '1',
    body: '{}',
    raisedAt: room.clock.now(),
    tries: 0,
    nextAt: 0,
  };
  const stored = new Map([[entry.id, entry]]);
  const triedAt: number[] = [];
  const webhook = new Webhook({
    ...room.world,
    url: receiver.url,
    key: Buffer.from('key'),
    store: {
      outbox: async () => [...stored.values()],
      postpone: async (later) => (stored.set(later.id, later), true),
      leaveOutbox: async (id) => void stored.delete(id),
    },
    outbound: {
      request: async () => {
        triedAt.push(room.clock.now() - entry.raisedAt);
        return { ok: false, errorType: 'CONNECTION_REFUSED', message: 'refused', durationMs: 1 };
      },
    },
  });
  await webhook.start();
  for (let minute = 0; minute < 25 * 60; minute++) {
    await new Promise((resolve) => setImmediate(resolve));
    room.clock.advance(60_000);
  }
  await webhook.close();
  expect([stored.size, room.warnings]).toEqual([
    0,
    [
      'webhook delivery failed: refused',
      'webhook delivery abandoned, the note is in the inbox: refused',
    ],
  ]);
  const waits = triedAt.slice(1).map((at, index) => at - triedAt[index]!);
  for (const [index, least] of [2_000, 10_000, 60_000, 300_000, 900_000, 900_000].entries()) {
    expect(waits[index]).toBeGreaterThanOrEqual(least);
    expect(waits[index]).toBeLessThanOrEqual(least * 1.2 + 60_000);
  }
  expect(triedAt.at(-1)).toBeGreaterThan(23 * 3_600_000);
  expect(triedAt.at(-1)).toBeLessThanOrEqual(24 * 3_600_000);
});

test('branch alerts stay away from the webhook, and without a URL nothing is sent', async () => {
  const notify = await start();
  for (const kind of ['ci_failed', 'branch_merged', 'branch_behind'] as const) {
    await notify.raise(alert({ kind }));
  }
  await notify.raise(alert({ title: 'last' }));
  await until(() => receiver.received.length > 0);
  expect(receiver.titles).toEqual(['last']);
  await until(async () => (await inOutbox()) === 0);
  await stop();
  const other = await start({ webhook_url: '' });
  expect(room.warnings.at(-1)).toMatch(/webhook_url is empty/);
  await other.raise(alert());
  expect(await inOutbox()).toBe(0);
});

test('settings that change while it runs move the outbox to the new webhook', async () => {
  const notify = await start({ webhook_enabled: false });
  await notify.raise(alert());
  expect(await inOutbox()).toBe(0);
  const settings = { enabled: false, webhook_enabled: true, stuck_after: 1_800_000 };
  const dead = 'http://127.0.0.1:9/';
  await open!.apply({ ...settings, webhook_url: dead });
  await notify.raise(alert({ title: 'moved' }));
  expect(await inOutbox()).toBe(1);
  await open!.apply({ ...settings, webhook_url: receiver.url });
  await eventually(() => receiver.received.length === 1);
  expect(receiver.received[0]!.body).toContain('moved');
});
