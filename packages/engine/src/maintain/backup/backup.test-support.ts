import { seededRandom } from '@millrace/kit/random';
import type { Database } from '../../api/database.js';
import type { JsonObject } from '../../value/documents.js';
import { decodeState, stateRow } from '../../storage/file/tables.js';

/** Writes of every kind, over several collections: what is there in the end is no simple thing. */
export async function fillWithVariety(db: Database, writes: number, seed = 1): Promise<void> {
  const random = seededRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[random.integer(0, list.length - 1)]!;
  const write = async (i: number): Promise<unknown> => {
    const collection = db.collection<JsonObject>(pick(['people', 'places', 'things']));
    const key = `key ${random.integer(0, 400)} é`;
    switch (random.integer(0, 6)) {
      case 0:
        return collection.insert(documentOf(random.integer(0, 9), i));
      case 1:
        return collection.insert(documentOf(random.integer(0, 9), i), { ttlMs: 1_000 + i });
      case 2:
        return collection.deleteByKey(key).catch(() => undefined);
      case 3:
        return collection.upsertMerge(key, { [`field${random.integer(0, 300)}`]: i });
      default:
        return collection.upsert(key, documentOf(random.integer(0, 9), i), {
          ttlMs: pick([0, 5_000]),
        });
    }
  };
  for (let i = 0; i < writes; i += 100) {
    await Promise.all(Array.from({ length: Math.min(100, writes - i) }, (_, j) => write(i + j)));
  }
}

function documentOf(kind: number, n: number): JsonObject {
  switch (kind) {
    case 0:
      return {};
    case 1:
      return { n, text: 'é😀"\\\n\u0000'.repeat(n % 20), list: [n, [n], { n }] };
    case 2:
      return {
        10: 'ten',
        9: 'nine',
        z: 1,
        a: 2,
        '': 'empty',
        deep: { a: { b: { c: [null, true] } } },
      };
    case 3:
      return { large: 'x'.repeat((n % 7) * 3_000), big: 2 ** 53 - 1, small: -1.5e-300, float: 0.1 };
    default:
      return { name: `n${n}`, n, group: `g${n % 5}`, ok: n % 2 === 0, none: null };
  }
}

/** Every record, whole, by collection and id; and where the history stands. */
export function contentOf(db: Database): unknown {
  const view = db.core.snapshot();
  const records: Record<string, unknown> = {};
  for (const { id: number, name } of db.core.catalog.all()) {
    for (const image of view.scan(number, {}, () => true)) {
      const { id, key, rev, seq, createdAt, updatedAt, expiresAt, contentHash, data } = image;
      const json = JSON.stringify(data);
      records[`${name}/${id}`] = {
        key,
        rev,
        seq,
        createdAt,
        updatedAt,
        expiresAt,
        contentHash,
        json,
      };
    }
  }
  const { seq, epoch, chain } = decodeState(view.get('meta', stateRow));
  view.done();
  return { seq, epoch, chain, records };
}
