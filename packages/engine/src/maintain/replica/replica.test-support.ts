import type { Random } from '@millrace/kit/random';
import type { Commit } from '../../format/record.js';
import type { Database } from '../../api/database.js';
import type { ManualClock } from '../../../test/manual-clock.test-support.js';
import { Refusal } from '@millrace/kit/errors';
import type { IncomingCommit } from './apply-commit.js';

export const collections = {
  a: {
    indexes: [
      { fields: ['n'] },
      { fields: ['u'], unique: true },
      { fields: ['tags', 'n'] },
      { search: ['text'], language: 'en' },
      { vector: 'v', dims: 2 },
    ],
  },
  b: {
    indexes: [
      { fields: ['u', '$key'], sparse: true },
      { fields: ['text'], collation: 'ci' as const, where: { n: { gt: 2 } } },
    ],
  },
};

/** One change or a few as one commit, of any kind; what is refused is no commit. */
export async function randomCommit(db: Database, random: Random, clock: ManualClock) {
  clock.skip(random.integer(0, 50));
  const key = () => `k${random.integer(0, 9)}`;
  const name = random.next() < 0.6 ? 'a' : 'b';
  const document = () => ({
    n: random.integer(0, 5),
    ...(random.next() < 0.6 && { u: random.integer(0, 12) }),
    ...(random.next() < 0.5 && { text: `Running ${random.integer(0, 3)} queues` }),
    ...(random.next() < 0.5 && { v: [random.next(), random.next()] }),
    ...(random.next() < 0.3 && { tags: ['x', 'y', 'z'].slice(random.integer(0, 2)) }),
  });
  const docs = db.collection(name);
  const ttlMs = random.next() < 0.3 ? random.integer(1, 200) : 0;
  const act = async () => {
    switch (random.integer(0, 6)) {
      case 0:
        return docs.insert(document(), { ttlMs });
      case 1:
      case 2:
        return docs.upsert(key(), document(), { ttlMs });
      case 3:
        return docs.deleteByKey(key());
      case 4:
        return docs.mergeByKey(key(), { n: -1, u: null });
      case 5:
        return db.sweepExpired();
      default:
        return db.transaction(async (transaction) => {
          for (let i = random.integer(1, 4); i > 0; i--) {
            const other = db.collection(random.next() < 0.5 ? 'a' : 'b');
            if (random.next() < 0.3) await other.deleteByKey(key(), { transaction });
            else await other.upsert(key(), document(), { transaction });
          }
        });
    }
  };
  await act().catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error;
  });
}

/** All records, with every field. */
export function recordsOf(db: Database): string[] {
  const view = db.core.snapshot();
  try {
    return db.catalog.collections().flatMap(({ id: number, name }) =>
      Array.from(
        view.scan(number, {}, () => true),
        ({ id, key, rev, seq, createdAt, updatedAt, expiresAt, data }) =>
          JSON.stringify([name, id, key, rev, seq, createdAt, updatedAt, expiresAt, data]),
      ),
    );
  } finally {
    view.done();
  }
}

/** A commit as it would arrive at a follower. */
export function asIncoming(
  db: Database,
  { seq, at, epoch, chain, changes, results = [] }: Commit,
): IncomingCommit {
  return {
    seq,
    at,
    epoch,
    leaderSeq: db.core.durable.seq,
    chain,
    results,
    changes: changes.map(({ op, collection, id, after }) => ({
      op,
      collection: db.core.catalog.byId(collection).name,
      id,
      after: after && {
        key: after.key,
        rev: after.rev,
        createdAt: after.createdAt,
        updatedAt: after.updatedAt,
        expiresAt: after.expiresAt,
        data: JSON.parse(JSON.stringify(after.data)) as Record<string, never>,
      },
    })),
  };
}
