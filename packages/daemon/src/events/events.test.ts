import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openApiDocument } from '@millrace/contract/documents';
import { open, type Database } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { DocumentSchemas, type OpenApiDocument, type ServerEvent } from '@millrace/kit/http';
import { memoryLog } from '@millrace/kit/log';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { newBackend } from '../core/backend.js';
import { Events, type Event, type EventFlow } from './events.js';
import { Reports } from './reports.js';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

async function openDatabase(): Promise<Database> {
  const home = mkdtempSync(join(tmpdir(), 'mr-events-'));
  undo.push(() => rmSync(home, { recursive: true, force: true }));
  const database = await open(home);
  undo.push(() => database.close());
  return database;
}

/** A reader of the stream that takes events on demand and closes at the end of the test. */
class Reader {
  readonly flow: EventFlow;
  readonly #abort = new AbortController();

  constructor(database: Database, lastId?: string) {
    const events = new Events({ database, clock: systemClock });
    this.flow = events.follow(lastId, this.#abort.signal);
    undo.push(() => this.leave());
  }

  async take(count: number): Promise<Event[]> {
    const taken: Event[] = [];
    while (taken.length < count) taken.push((await this.next())!.data as Event);
    return taken;
  }

  async next(): Promise<ServerEvent | undefined> {
    const { value } = await this.flow.events.next();
    return value as ServerEvent | undefined;
  }

  leave(): void {
    this.#abort.abort();
  }
}

const summary = ({ type, key }: Event) => `${type} ${key}`;

describe('the stream of events', () => {
  test('starts now, and tells each change of what is kept', async () => {
    const database = await openDatabase();
    const notes = database.collection('notes');
    await notes.insertWithKey('old', { id: 'old' });
    const reader = new Reader(database);
    await notes.insertWithKey('n1', { id: 'n1', read: false });
    await notes.upsert('n1', { id: 'n1', read: true });
    await notes.deleteByKey('n1');
    const events = await reader.take(3);
    expect(events.map(summary)).toEqual(['note.changed n1', 'note.changed n1', 'note.removed n1']);
    expect(events[1]!.data).toEqual({ id: 'n1', read: true });
    expect(events[2]!.data).toBeNull();
  });

  test('tells nothing of what is only for the daemon itself', async () => {
    const database = await openDatabase();
    const reader = new Reader(database);
    await database.collection('session_handles').insertWithKey('s', { secret: true });
    await database.collection('marks').insertWithKey('settings', {});
    await database.collection('settings').insertWithKey('other', {});
    await database.collection('metrics').insertWithKey('2026-01-15', {});
    await database.collection('notes').insertWithKey('n', {});
    expect((await reader.take(1)).map(summary)).toEqual(['note.changed n']);
  });

  test('goes on after the id that was seen last, also in the middle of a commit', async () => {
    const database = await openDatabase();
    const first = new Reader(database);
    await database.transact((target) => {
      for (const key of ['a', 'b', 'c']) target.collection('branches').put(key, { key });
    });
    await database.collection('branches').insertWithKey('d', {});
    const all = await first.take(4);
    expect(new Set(all.map(({ id }) => id)).size).toBe(4);
    for (const [index, { id }] of all.entries()) {
      const rest = all.slice(index + 1);
      const again = new Reader(database, id);
      expect(await again.take(rest.length)).toEqual(rest);
      expect(again.flow.startId).toBeUndefined();
    }
  });

  test('gives a place to come back to before there was any event', async () => {
    const database = await openDatabase();
    const { startId } = new Reader(database).flow;
    await database.collection('notes').insertWithKey('missed', {});
    expect((await new Reader(database, startId).take(1)).map(summary)).toEqual([
      'note.changed missed',
    ]);
  });

  test.each(['18244', 'nonsense', '999999-00000000', '1-ffffffff', '0', '-1', '1.5-0'])(
    'begins with a reset for the unknown id %s, and then goes on from now',
    async (id) => {
      const database = await openDatabase();
      await database.collection('notes').insertWithKey('before', {});
      const reader = new Reader(database, id);
      const [reset] = await reader.take(1);
      expect(reset).toMatchObject({ type: 'stream.reset', key: null, data: null });
      await database.collection('notes').insertWithKey('after', {});
      expect((await reader.take(1)).map(summary)).toEqual(['note.changed after']);
      const again = new Reader(database, reset!.id);
      expect((await again.take(1)).map(summary)).toEqual(['note.changed after']);
    },
  );

  test('begins with a reset for an id that the log no longer has', async () => {
    const database = await openDatabase();
    const first = new Reader(database);
    const notes = database.collection('notes');
    for (let n = 0; n < 5; n++) await notes.insertWithKey(`n${n}`, {});
    const [old] = await first.take(1);
    await database.trimLog(5);
    expect((await new Reader(database, old!.id).take(1))[0]!.type).toBe('stream.reset');
  });

  test('knows an id of other data from one of its own', async () => {
    const [one, other] = [await openDatabase(), await openDatabase()];
    for (const database of [one, other]) {
      for (let n = 0; n < 5; n++) await database.collection('notes').insertWithKey(`n${n}`, {});
    }
    const { startId } = new Reader(one).flow;
    expect((await new Reader(other, startId).take(1))[0]!.type).toBe('stream.reset');
  });

  test('sends stream.reset to a reader that fell behind the log', async () => {
    const database = await openDatabase();
    const reader = new Reader(database);
    const notes = database.collection('notes');
    await notes.insertWithKey('n0', {});
    expect((await reader.take(1)).map(summary)).toEqual(['note.changed n0']);
    for (let n = 1; n < 6; n++) await notes.insertWithKey(`n${n}`, {});
    await database.trimLog(database.logPosition.seq);
    expect((await reader.take(1))[0]!.type).toBe('stream.reset');
    await notes.insertWithKey('fresh', {});
    expect((await reader.take(1)).map(summary)).toEqual(['note.changed fresh']);
  });

  test('ends with its signal, also while it waits, and leaves no watch behind', async () => {
    const database = await openDatabase();
    const reader = new Reader(database);
    const waiting = reader.next();
    await expect.poll(() => database.watches.size).toBe(1);
    reader.leave();
    expect(await waiting).toBeUndefined();
    expect(database.watches.size).toBe(0);
  });

  test('misses nothing and tells nothing twice, however often it is cut off', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 25 }),
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 20 }),
        async (commits, stays) => {
          const database = await openDatabase();
          let lastId = new Reader(database).flow.startId;
          let count = 0;
          for (const size of commits) {
            await database.transact((target) => {
              for (let n = 0; n < size; n++) {
                const key = `s${count++}`;
                target.collection('outbox').put(`before ${key}`, { key });
                target.collection('sessions').put(key, { key });
                target.collection('outbox').put(`after ${key}`, { key });
              }
            });
          }
          const seen: string[] = [];
          for (let turn = 0; seen.length < count; turn++) {
            const reader = new Reader(database, lastId);
            const stay = Math.min(stays[turn % stays.length]!, count - seen.length);
            for (const event of await reader.take(stay)) {
              seen.push(event.key!);
              lastId = event.id;
            }
            reader.leave();
          }
          expect(seen).toEqual(Array.from({ length: count }, (_, n) => `s${n}`));
        },
      ),
      { numRuns: 15 },
    );
  });
});

describe('what an event says', () => {
  const schemas = new DocumentSchemas(openApiDocument('daemon') as unknown as OpenApiDocument);
  const check = schemas.named('Event');
  const examples = (
    openApiDocument('daemon') as unknown as {
      components: { examples: Record<string, { value: Record<string, unknown[]> }> };
    }
  ).components.examples;

  test.each([
    ['sessions', 'k', () => examples['SessionList']!.value['sessions']![0], 'session.changed'],
    ['pipelines', 'k', () => examples['PipelineList']!.value['pipelines']![0], 'pipeline.changed'],
    ['plans', 'k', () => examples['PlanList']!.value['plans']![0], 'plan.changed'],
    ['notes', 'k', () => examples['Inbox']!.value['notes']![0], 'note.changed'],
    ['branches', 'k', () => examples['BranchStandings']!.value['branches']![0], 'branch.changed'],
    ['metrics', 'latest', () => examples['Metrics']!.value, 'metrics.sampled'],
    ['settings', 'settings', () => settings, 'settings.changed'],
    [
      'backends',
      'claude',
      () => newBackend({ id: 'claude', installed: true, binaryPath: '/bin/claude' }, 1e12),
      'backend.changed',
    ],
  ] as const)('of %s is what the contract has', async (collection, key, data, type) => {
    const database = await openDatabase();
    const reader = new Reader(database);
    await database.collection(collection).insertWithKey(key, data() as Record<string, unknown>);
    await database.collection(collection).deleteByKey(key);
    await database.collection('notes').insertWithKey('end', {});
    const [changed, removed] = await reader.take(2);
    expect(changed!.type).toBe(type);
    expect(check.faults(changed)).toEqual([]);
    if (removed!.key !== 'end') expect(check.faults(removed)).toEqual([]);
  });

  test('of a report comes by way of the store, and many at once are one', async () => {
    const database = await openDatabase();
    const reports = new Reports({ database, clock: systemClock, log: memoryLog(), pauseMs: 50 });
    const reader = new Reader(database);
    for (let n = 0; n < 20; n++) reports.changed('spend');
    reports.changed('usage');
    reports.changed('savings');
    const events = await reader.take(4);
    expect(events.map(summary)).toEqual([
      'spend.changed null',
      'usage.changed null',
      'savings.changed null',
      'spend.changed null',
    ]);
    for (const event of events) expect(check.faults(event)).toEqual([]);
    await reports.close();
    const again = new Reader(database, events[2]!.id);
    expect((await again.take(1)).map(summary)).toEqual(['spend.changed null']);
  });

  test('of a pending report is published on close', async () => {
    const database = await openDatabase();
    const reports = new Reports({ database, clock: systemClock, log: memoryLog() });
    const reader = new Reader(database);
    reports.changed('spend');
    reports.changed('spend');
    await reports.close();
    reports.changed('spend');
    expect((await reader.take(2)).map(summary)).toEqual([
      'spend.changed null',
      'spend.changed null',
    ]);
  });
});

const settings = { internal_thinking_mode: 'local_only', allow_paid_autopilot: false };
