import { Refusal } from '@millrace/kit/errors';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { problemsOf } from './consistency.test-support.js';
import type { Database } from '../src/api/database.js';
import type { JsonObject } from '../src/value/documents.js';
import type { IndexDefinition } from '../src/format/entries.js';
import * as arbitrary from '../src/query/arbitraries.test-support.js';
import { useScratch } from './scratch.test-support.js';

const scratch = useScratch();
const key = fc.constantFrom('a', 'b', 'c', 'd');
const write = fc.record({
  kind: fc.constantFrom(
    'insert' as const,
    'insert' as const,
    'insertWithKey' as const,
    'upsert' as const,
    'update' as const,
    'merge' as const,
    'delete' as const,
    'deleteByKey' as const,
    'pass time' as const,
  ),
  key,
  /** Which of the records made so far. */
  pick: fc.nat(40),
  data: arbitrary.document,
  ttlMs: fc.constantFrom(undefined, undefined, 0, 5),
  /** Inside a transaction that commits after a few writes. */
  inside: fc.boolean(),
});
type Write = typeof write extends fc.Arbitrary<infer T> ? T : never;

/** What a random write may well be refused for. */
const expected = new Set([
  'DUPLICATE_KEY',
  'KEY_NOT_FOUND',
  'RECORD_NOT_FOUND',
  'UNIQUE_VIOLATION',
  'TX_CONFLICT',
  'BAD_DATA',
]);

/** Makes random writes, some of them in transactions; refusals are part of life. */
class Scribe {
  readonly #ids: string[] = [];
  #transaction: ReturnType<Database['transactions']['begin']> | undefined;
  done = 0;

  constructor(private readonly db: Database) {}

  async write(one: Write): Promise<void> {
    if (one.inside) this.#transaction ??= this.db.transactions.begin();
    else await this.commit();
    try {
      await this.#perform(one);
      this.done++;
    } catch (error) {
      if (!(error instanceof Refusal) || !expected.has(error.code)) throw error;
    }
  }

  async commit(): Promise<void> {
    const transaction = this.#transaction;
    this.#transaction = undefined;
    if (!transaction) return;
    await this.db.transactions.commit(transaction.id).catch((error: unknown) => {
      if (!(error instanceof Refusal) || !expected.has(error.code)) throw error;
    });
  }

  async #perform({ kind, key: name, pick, data, ttlMs }: Write): Promise<void> {
    const docs = this.db.collection<JsonObject>('docs');
    const options = { ttlMs, transaction: this.#transaction };
    const id = this.#ids[pick % Math.max(1, this.#ids.length)] ?? '01BX5ZZKBKACTAV9WEVGEMMVRZ';
    switch (kind) {
      case 'insert':
        return this.#note(await docs.insert(data, options));
      case 'insertWithKey':
        return this.#note(await docs.insertWithKey(name, data, options));
      case 'upsert':
        return this.#note((await docs.upsert(name, data, options)).record);
      case 'update':
        return this.#note(await docs.update(id, data, options));
      case 'merge':
        return this.#note(await docs.merge(id, data as object, options));
      case 'delete':
        return this.#note(await docs.delete(id, options));
      case 'deleteByKey':
        return this.#note(await docs.deleteByKey(name, options));
      case 'pass time':
        scratch.clock.skip(3);
        if (pick % 3 === 0) await this.db.sweepExpired();
    }
  }

  #note({ id }: { id: string }): void {
    if (!this.#ids.includes(id)) this.#ids.push(id);
  }
}

function declare(indexes: IndexDefinition[]) {
  const byText = new Map(indexes.map((each) => [JSON.stringify(each), each]));
  return { docs: { indexes: [...byText.values()] } };
}

describe('whatever is written', () => {
  test('the rows of every index follow from the records, both ways', async () => {
    let done = 0;
    await fc.assert(
      fc.asyncProperty(
        arbitrary.indexes,
        fc.array(write, { minLength: 5, maxLength: 60 }),
        async (indexes, writes) => {
          const db = await scratch.open({ collections: declare(indexes) });
          const scribe = new Scribe(db);
          for (const one of writes) await scribe.write(one);
          await scribe.commit();
          await db.indexesBuilt();
          expect(problemsOf(db.core)).toEqual([]);
          // The engine's own verify must come to the same verdict.
          expect((await db.verify()).problems).toEqual([]);
          expect(db.indexes().filter(({ state }) => state !== 'ready')).toEqual([]);
          done += scribe.done;
          await db.close();
        },
      ),
      { numRuns: 25 },
    );
    expect(done).toBeGreaterThan(100);
  });

  test('an empty array is noted although it has the same entries as no value', async () => {
    const db = await scratch.open({ collections: declare([{ fields: ['a.b', '$key'] }]) });
    const docs = db.collection<JsonObject>('docs');
    const { id } = await docs.insert({});
    await docs.merge(id, { a: [] });
    expect(problemsOf(db.core)).toEqual([]);
    expect((await db.verify()).problems).toEqual([]);
  });

  test('an index that is built meanwhile ends up the same', async () => {
    const indexes = arbitrary.indexes.map((all) => all.map((each) => ({ ...each, unique: false })));
    await fc.assert(
      fc.asyncProperty(
        indexes,
        fc.array(arbitrary.document, { minLength: 1, maxLength: 300 }),
        fc.array(write, { maxLength: 40 }),
        async (definitions, documents, writes) => {
          const before = await scratch.open();
          const docs = before.collection<JsonObject>('docs');
          await Promise.all(documents.map((each) => docs.insert(each)));
          const db = await scratch.reopen(before, { collections: declare(definitions) });
          const scribe = new Scribe(db);
          for (const one of writes) await scribe.write(one);
          await scribe.commit();
          await db.indexesBuilt();
          expect(problemsOf(db.core)).toEqual([]);
          // The engine's own verify must come to the same verdict.
          expect((await db.verify()).problems).toEqual([]);
          expect(db.indexes().filter(({ state }) => state !== 'ready')).toEqual([]);
          await db.close();
        },
      ),
      { numRuns: 12 },
    );
  });
});
