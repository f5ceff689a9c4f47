import { systemClock } from '@millrace/kit/clock';
import { seededRandom } from '@millrace/kit/random';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Database } from '../api/database.js';
import { storyOf, useScratch } from '../../test/scratch.test-support.js';
import { next, settle, type Item, type Message } from './watch.test-support.js';

const scratch = useScratch();

/** Writers that mix single writes and transactions over two collections. */
async function write(db: Database, seed: number, count: number): Promise<void> {
  const random = seededRandom(seed);
  const [items, others] = [db.collection<Item>('items'), db.collection<Item>('others')];
  for (let i = 0; i < count; i++) {
    const key = `k${random.integer(0, 9)}`;
    const pick = random.integer(0, 5);
    if (pick < 3) await items.upsert(key, { n: i });
    else if (pick === 3) await others.upsert(key, { n: i });
    else if (pick === 4) await items.deleteByKey(key).catch(() => undefined);
    else {
      const tx = db.transactions.begin();
      for (let j = 0; j < 5; j++) await items.insert({ n: i }, { transaction: tx });
      await others.insert({ n: i }, { transaction: tx });
      await db.transactions.commit(tx.id);
    }
  }
}

/** Reads to the last commit, going away and coming back by token whenever chance says so. */
async function readWithCuts(
  db: Database,
  seed: number,
  collection: string | undefined,
  isWritten: () => boolean,
): Promise<Message[]> {
  const random = seededRandom(seed);
  const seen: Message[] = [];
  const open = (resumeToken?: string) =>
    db.watches.open<Message['changes'][number]>(
      resumeToken ? { collection, resumeToken } : { collection, startSeq: 1 },
    );
  let watch = open();
  let token: string | undefined;
  for (;;) {
    if (isWritten() && watch.position >= db.core.durable.seq) break;
    const waiting = watch.next();
    // The consumer may have gone away while a message was on its way: that one is not seen.
    if (random.next() < 0.1) {
      await watch.return();
      const step = await waiting;
      if (!step.done && random.next() < 0.5) {
        seen.push(step.value);
        token = step.value.resumeToken;
      }
      watch = open(token);
      continue;
    }
    scratch.clock.advance(random.integer(0, 200));
    const step = await Promise.race([waiting, untilWritten(isWritten)]);
    if (step === undefined) {
      // Nothing may come any more: a bookmark shows that it is so.
      scratch.clock.advance(20_000);
    }
    const { value, done } = await waiting;
    expect(done ?? false).toBe(false);
    seen.push(value!);
    token = value!.resumeToken;
    if (random.next() < 0.2) {
      await watch.return();
      watch = open(token);
    }
  }
  await watch.return();
  return seen;
}

async function untilWritten(isWritten: () => boolean): Promise<undefined> {
  while (!isWritten()) await settle();
  await settle();
  return undefined;
}

test('watchers that go away at random and come back see every change once, in order, whole', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const db = await scratch.open();
      let writing = true;
      const writers = Promise.all([write(db, seed, 40), write(db, seed + 1, 40)]).finally(() => {
        writing = false;
      });
      const readers = [undefined, 'items', undefined, 'others'].map((collection, i) =>
        readWithCuts(db, seed + i, collection, () => !writing).then((seen) => ({
          collection,
          seen,
        })),
      );
      await writers;
      const story = storyOf(db);
      for (const { collection, seen } of await Promise.all(readers)) {
        const changes = seen.filter(({ kind }) => kind === 'changes');
        const expected = story
          .map((changes, i) => ({
            seq: i + 1,
            changes: changes.filter((each) => !collection || each.includes(` ${collection}/`)),
          }))
          .filter(({ changes }) => changes.length > 0);
        expect(changes.map(summary)).toEqual(expected);
      }
      expect(db.watches.size).toBe(0);
      await db.close();
    }),
    { numRuns: 8 },
  );
});

function summary({ seq, changes }: Message): { seq: number; changes: string[] } {
  return {
    seq,
    changes: changes.map(
      ({ op, collection, record }) => `${op} ${collection}/${record.key} rev ${record.rev}`,
    ),
  };
}

test('a reader that is never asked holds nothing back and loses nothing', async () => {
  const db = await scratch.open();
  const items = db.collection<Item>('items');
  const watch = items.watch();
  for (let round = 0; round < 20; round++) {
    await Promise.all(Array.from({ length: 100 }, (_, n) => items.insert({ n })));
  }
  expect(db.core.snapshots.size).toBe(0);
  for (let seq = 1; seq <= 2_000; seq++) expect((await next(watch)).seq).toBe(seq);
  await watch.return?.();
});

test('a reader that is far behind and never waits lets others have their turn', async () => {
  const db = await scratch.open({ clock: systemClock });
  const items = db.collection<Item>('items');
  await Promise.all(Array.from({ length: 3_000 }, (_, n) => items.insert({ n })));
  const watch = items.watch({ startSeq: 1 });
  const initial = items.watch({ includeInitial: true });
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  const started = systemClock.monotonic();
  for (let seq = 1; seq <= 3_000; seq++) await next(watch);
  for (let received = 0; received < 3_000;) received += (await next(initial)).changes.length;
  const tookMs = systemClock.monotonic() - started;
  counting = false;
  // A turn for every few milliseconds of work; on a busy machine a slice may take much longer.
  expect(turns).toBeGreaterThan(Math.min(5, tookMs / 100));
  await Promise.all([watch.return?.(), initial.return?.()]);
});
