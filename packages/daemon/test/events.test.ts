import { mkdirSync, mkdtempSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { expectSchema } from './support/client.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { EventSource, type Event } from './support/event-source.js';
import { FakeClis } from './support/fake-clis.js';

const again = inCampaign('process');

let daemon: TestDaemon;
let home: string;
const sources: EventSource[] = [];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'mr-events-'));
  const clis = new FakeClis(join(home, 'bin'));
  clis.addEmpty('claude', 'gemini');
  // No sample of the machine comes in between.
  daemon = await startDaemon({ home, path: clis.path, flags: { metrics: 'off' } });
});
afterEach(async () => {
  for (const source of sources.splice(0)) source.cut();
  await daemon.dispose();
});

async function follow(given: { lastId?: string; query?: string } = {}): Promise<EventSource> {
  const source = await EventSource.open(daemon.url, given);
  sources.push(source);
  return source;
}

const modes = ['local_only', 'free_plus_local'] as const;
let turn = 0;
/** Changes the settings: one event. */
async function change(): Promise<void> {
  const mode = modes[turn++ % modes.length];
  await daemon.api.ok('PUT', '/api/v1/backends/thinking-mode', { mode });
}

const summary = ({ type, key }: Event) => `${type} ${key}`;
const ids = (events: readonly Event[]) => events.map(({ id }) => id);

test('a stream opens with the pause to come back after, and tells changes as they come', async () => {
  const source = await follow();
  expect(source.answer!.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
  });
  expect(source.retryMs).toBe(2_000);
  expect(source.lastEventId).toBeDefined();
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'claude' });
  await change();
  const events = await source.see(2);
  expect(events.map(summary)).toEqual(['backend.changed claude', 'settings.changed settings']);
  for (const event of events) expectSchema('Event', event);
  expect(events[0]!.data).toEqual(await daemon.api.row('claude'));
});

test('events: a commit with several changes publishes one event per change', async () => {
  const source = await follow();
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'claude' });
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'gemini' });
  const events = await source.see(3);
  expect(events.map(summary).toSorted()).toEqual([
    'backend.changed claude',
    'backend.changed claude',
    'backend.changed gemini',
  ]);
  const again = await follow({ lastId: events[1]!.id });
  expect(await again.see(1)).toEqual(events.slice(2));
});

test('a client that is cut off and comes back misses nothing and sees nothing twice', async () => {
  const whole = await follow();
  const seen: Event[] = [];
  let source = await follow();
  const writing = (async () => {
    for (let n = 0; n < 60; n++) await change();
  })();
  while (seen.length < 60) {
    await source.see(1);
    source.cut();
    seen.push(...source.events);
    const lastId = source.lastEventId!;
    // Now by the header, now by the query: a wrong query does not matter beside a header.
    const given =
      seen.length % 2
        ? { lastId, query: '?last_event_id=1' }
        : { query: `?last_event_id=${lastId}` };
    source = await follow(given);
  }
  await writing;
  const all = await whole.see(60);
  expect(ids(seen)).toEqual(ids(all));
  expect(new Set(ids(all)).size).toBe(60);
});

test('whoever is cut off before the first event does not miss it', async () => {
  const source = await follow();
  source.cut();
  await change();
  const again = await follow({ lastId: source.lastEventId! });
  expect((await again.see(1)).map(summary)).toEqual(['settings.changed settings']);
});

test('an id that is unknown or of other data is answered with a reset first', async () => {
  await change();
  for (const lastId of ['1', '18244', 'x', '99999999-00000000']) {
    const source = await follow({ lastId });
    const [reset] = await source.see(1);
    expect(reset).toMatchObject({ type: 'stream.reset', key: null, data: null });
    expectSchema('Event', reset);
    await change();
    expect((await source.see(2)).map(summary)).toEqual([
      'stream.reset null',
      'settings.changed settings',
    ]);
  }
});

test('an id that is too long, and a query that is not known, are refused', async () => {
  const path = '/api/v1/events';
  const long = { 'last-event-id': 'x'.repeat(65) };
  await daemon.api.refused({ path, headers: long }, 400, 'INVALID_REQUEST');
  for (const query of [`last_event_id=${'x'.repeat(65)}`, 'since=1h']) {
    await daemon.api.refused({ path: `${path}?${query}` }, 400, 'INVALID_REQUEST');
  }
});

again('a hundred readers all see the same, and the daemon stops at once under them', async () => {
  const readers = await Promise.all(Array.from({ length: 100 }, () => follow()));
  for (let n = 0; n < 10; n++) await change();
  const [first] = readers;
  const wanted = ids(await first!.see(10));
  for (const reader of readers) expect(ids(await reader.see(10))).toEqual(wanted);
  const begunAt = performance.now();
  await daemon.stop();
  expect(performance.now() - begunAt).toBeLessThan(30_000);
  const cut = daemon.log.lines.filter(({ message }) => message.includes('were cut'));
  expect(cut).toEqual([]);
  await expect.poll(() => readers.every(({ hasEnded }) => hasEnded)).toBe(true);
});

again(
  'a reader who does not read does not hold up the end',
  async () => {
    await daemon.stop();
    const flags = { metrics: 'off', 'drain-timeout-ms': '120000' };
    daemon = await startDaemon({ home, path: join(home, 'bin'), flags });
    const source = await follow();
    source.answer!.pause();
    const jobs = [1, 2, 3, 4].map((n) => ({ id: `j${n}`, prompt: 'x'.repeat(250_000) }));
    for (let n = 0; n < 20; n++) {
      const body = { name: 'large', start: false, jobs };
      const reply = await daemon.api.send({ method: 'POST', path: '/api/v1/pipelines', body });
      expect(reply.status).toBe(201);
    }
    const begunAt = performance.now();
    await daemon.stop();
    expect(performance.now() - begunAt).toBeLessThan(60_000);
  },
  180_000,
);

test('events: new lines in ledger and transcripts publish changed reports', async () => {
  const source = await follow();
  const ledger = join(home, 'data', 'savings', 'ledger.jsonl');
  mkdirSync(join(home, 'data', 'savings'), { recursive: true });
  await appendFile(ledger, '{}\n');
  expectSchema('Event', (await source.see(1, 'savings.changed'))[0]);
  const project = join(home, '.claude', 'projects', 'p');
  mkdirSync(project, { recursive: true });
  await appendFile(join(project, 's.jsonl'), '{"type":"user"}\n');
  await daemon.api.ok('GET', '/api/v1/spend');
  expectSchema('Event', (await source.see(1, 'spend.changed'))[0]);
  await daemon.api.ok('PATCH', '/api/v1/backends/claude', { tier: 'subscription' });
  await daemon.api.ok('GET', '/api/v1/usage?refresh=true');
  expectSchema('Event', (await source.see(1, 'usage.changed'))[0]);
});

test('what sessions, pipelines and samples tell is what the contract has', async () => {
  await daemon.stop();
  const clis = new FakeClis(join(home, 'bin'));
  clis.add('gemini', "console.log('hello')");
  daemon = await startDaemon({ home, path: `${clis.path}:${process.env['PATH']}` });
  const source = await follow();
  const jobs = [{ id: 'a', prompt: 'Say hello.', backend: 'gemini' }];
  const pipeline = await daemon.api.send({
    method: 'POST',
    path: '/api/v1/pipelines',
    body: { name: 'n', jobs },
  });
  const isDone = ({ type, data }: Event) =>
    type === 'pipeline.changed' && (data as { status: string }).status === 'done';
  await vi.waitFor(() => expect(source.events.some(isDone)).toBe(true), { timeout: 60_000 });
  const { session_id } = (source.events.findLast(isDone)!.data as typeof pipeline.json).jobs[0];
  await daemon.api.ok('DELETE', `/api/v1/sessions/${session_id}`);
  await source.see(1, 'session.removed');
  await source.see(1, 'metrics.sampled');
  await source.see(2, 'session.changed');
  for (const event of source.events) expectSchema('Event', event);
  const summary = source.events.filter(({ key }) => key === session_id);
  expect(summary.length).toBeGreaterThan(2);
});
