import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import type { FlagValue } from '@millrace/kit/config';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Receiver } from '../src/notify/receiver.test-support.js';
import { expectSchema, type ApiClient } from './support/client.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';
import { seedNotes } from './support/seed.js';

let home: string;
let clis: FakeClis;
let receiver: Receiver;
let daemon: TestDaemon | undefined;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'mr-alerts-'));
  mkdirSync(join(home, 'work'));
  clis = new FakeClis(join(home, 'bin'));
  clis.add('claude', 'console.error("no such thing"); process.exitCode = 3;');
  receiver = await Receiver.listen();
});
afterEach(async () => {
  await daemon?.dispose();
  daemon = undefined;
  await receiver.close();
});

async function start(flags: Record<string, FlagValue> = {}): Promise<ApiClient> {
  daemon = await startDaemon({ home, path: `${clis.path}:/usr/bin:/bin`, flags });
  return daemon.api;
}

const withWebhook = () => ({
  'notify-webhook-enabled': 'on',
  'notify-webhook-url': receiver.url,
});

async function spawn(api: ApiClient): Promise<DaemonSchema<'Session'>> {
  const body = { prompt: 'x', name: 'docs', driver: 'headless', backend: 'claude' };
  const reply = await api.send({
    method: 'POST',
    path: '/api/v1/spawn',
    body: { ...body, cwd: join(home, 'work') },
  });
  expect([reply.status, reply.text]).toEqual([201, reply.text]);
  return reply.json as DaemonSchema<'Session'>;
}

const notesOf = async (api: ApiClient, query = '') => {
  const inbox = (await api.ok('GET', `/api/v1/inbox${query}`)) as DaemonSchema<'Inbox'>;
  expectSchema('Inbox', inbox);
  return inbox.notes;
};

const eventually = (check: () => unknown) =>
  expect.poll(async () => Boolean(await check()), { timeout: 60_000, interval: 20 }).toBe(true);

test('an agent that fails is in the inbox and at the webhook, under one id, signed', async () => {
  const api = await start(withWebhook());
  const { id: agentId } = await spawn(api);
  await eventually(() => receiver.received.length === 1);
  const [note] = await notesOf(api);
  expect(note).toMatchObject({
    kind: 'errored',
    severity: 'critical',
    title: 'docs failed',
    body: 'no such thing',
    agent_id: agentId,
    read: false,
  });
  const { body, headers } = receiver.received[0]!;
  const secret = readFileSync(join(daemon!.dataDir, 'webhook-secret'), 'utf8').trim();
  const verified = new Verifier(secret).verify(body, headers as Record<string, string>);
  expectSchema('WebhookNotification', verified);
  expect(verified).toMatchObject({
    id: note!.id,
    text: 'docs failed\n\nno such thing',
    agent: { id: agentId, name: 'docs', status: 'errored' },
  });
  await api.ok('DELETE', `/api/v1/sessions/${agentId}`);
  expect(await notesOf(api)).toHaveLength(1);
});

test('an alert that could not be sent is sent by the next daemon, and raised only once', async () => {
  receiver.answer = (response) => response.writeHead(500).end();
  const api = await start(withWebhook());
  const { id } = await spawn(api);
  await eventually(() => receiver.received.length === 1);
  await daemon!.stop();
  receiver.answer = (response) => response.writeHead(200).end();
  const again = await start(withWebhook());
  await eventually(() => receiver.received.length === 2);
  const [first, second] = receiver.received;
  expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
  expect(await notesOf(again)).toHaveLength(1);
  await again.ok('DELETE', `/api/v1/sessions/${id}`);
});

test('notes are read one by one, and stay read', async () => {
  const seeded = await seedNotes(home, ['one', 'two', 'three']);
  const api = await start();
  const titles = async (query = '') => (await notesOf(api, query)).map(({ title }) => title);
  expect(await titles()).toEqual(['three', 'two', 'one']);
  const read = await api.ok('POST', `/api/v1/inbox/${seeded[1]!.id}:read`);
  expectSchema('InboxNote', read);
  expect(read).toEqual({ ...seeded[1], read: true });
  expect(await api.ok('POST', `/api/v1/inbox/${seeded[1]!.id}:read`)).toEqual(read);
  expect(await titles('?unread=true')).toEqual(['three', 'one']);
  expect(await titles('?unread=false&limit=1')).toEqual(['three']);
  await api.refused({ method: 'POST', path: '/api/v1/inbox/nope:read' }, 404, 'NOTE_NOT_FOUND');
});

test.each([
  ['off', { on: true, off: false, inherit: false }],
  ['on', { on: true, off: false, inherit: true }],
])('with tokens.force_compact %s an override comes to what it should', async (setting, meant) => {
  const api = await start({ 'tokens-force-compact': setting });
  const { id, force_compact } = await spawn(api);
  expect(force_compact).toBe('inherit');
  const path = `/api/v1/sessions/${id}/force-compact`;
  for (const [state, effective] of Object.entries(meant)) {
    const answer = await api.ok('PATCH', path, { state });
    expectSchema('ForceCompactState', answer);
    expect(answer).toEqual({ id, state, effective });
    expect((await api.ok('GET', `/api/v1/sessions/${id}`)).force_compact).toBe(state);
  }
  const refused = (body: object) => ({ method: 'PATCH', path, body });
  await api.refused(refused({ state: 'maybe' }), 400, 'INVALID_REQUEST');
  await api.refused(refused({ state: 'on', more: 1 }), 400, 'INVALID_REQUEST');
  const nobody = { ...refused({ state: 'on' }), path: '/api/v1/sessions/nobody/force-compact' };
  await api.refused(nobody, 404, 'SESSION_NOT_FOUND');
  await api.ok('DELETE', `/api/v1/sessions/${id}`);
});

test('the config shows where the secret is, and not the secret', async () => {
  const api = await start();
  const { entries } = (await api.ok('GET', '/api/v1/config')) as DaemonSchema<'ConfigView'>;
  expect(entries.find(({ key }) => key === 'notify.webhook_secret')).toMatchObject({
    key: 'notify.webhook_secret',
    value: '********',
    source: 'file',
    origin: join(daemon!.dataDir, 'webhook-secret'),
    secret: true,
    editable: false,
  });
});

test('a secret in the wrong form is refused at the start, and the data is free again', async () => {
  await expect(start({ 'notify-webhook-secret': 'hunter2' })).rejects.toThrow(
    /^notify\.webhook_secret must be "whsec_" followed by base64/,
  );
  await start();
});
