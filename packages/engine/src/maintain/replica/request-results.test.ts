import { describe, expect, test } from 'vitest';
import { problemsOf } from '../../../test/consistency.test-support.js';
import type { Database } from '../../api/database.js';
import { refuse } from '../../value/documents.js';
import { commitsOf, refusalOf, useScratch } from '../../../test/scratch.test-support.js';
import { applyCommit } from './apply-commit.js';
import { asIncoming } from './replica.test-support.js';

const scratch = useScratch();
const seal = () => () => refuse('READ_ONLY_REPLICA', 'It follows.', { leader: '' });

/** A follower with all commits of `leader`, and the records in another order inside its file. */
async function follow(leader: Database): Promise<Database> {
  const follower = await scratch.open({ collections: { z: {}, docs: {} }, seal });
  const commits = commitsOf(leader).map((commit) => asIncoming(leader, commit));
  await Promise.all(commits.map((commit) => applyCommit(follower.core, commit)));
  return follower;
}

function promote(follower: Database): Database {
  follower.core.sealed = undefined;
  return follower;
}

/** Every kind of write, to be called again with the same request ids. */
function writesOf(db: Database, id: string) {
  const docs = db.collection<{ n: number }>('docs');
  const request = (requestId: string) => ({ requestId });
  return [
    () => docs.insert({ n: 1 }, request('insert')),
    () => docs.insertWithKey('b', { n: 1 }, request('with key')),
    () => docs.update(id, { n: 2 }, request('update')),
    () => docs.mergeByKey('a', { n: 3 }, request('merge')),
    () => docs.upsert('a', { n: 4 }, request('upsert')),
    () => docs.upsert('new', { n: 4 }, request('upsert a new one')),
    () => docs.updateIfRev({ key: 'b' }, 1, { n: 5 }, request('if rev')),
    () => docs.deleteByKey('b', request('delete')),
    () => docs.bulkWrite([{ insert: { data: { n: 6 } } }], request('bulk')),
    () => docs.bulkWrite([{ delete: { key: 'new' } }], { atomic: true, ...request('atomic') }),
    () => docs.updateMany({ n: { gt: 3 } }, { n: 7 }, request('update many')),
    () => docs.deleteMany({ n: 7 }, request('delete many')),
  ];
}

async function answersOf(writes: readonly (() => Promise<unknown>)[]): Promise<unknown[]> {
  const answers = [];
  for (const write of writes) answers.push(await write());
  return answers;
}

describe('results of requests on a promoted follower', () => {
  test('repeated writes of every kind answer the same and change nothing', async () => {
    const leader = await scratch.open();
    const { id } = await leader.collection('docs').insertWithKey('a', { n: 0 });
    const answers = await answersOf(writesOf(leader, id));
    // The second follower has them from the log of the first one.
    const next = promote(await follow(await follow(leader)));
    expect(next.core.state.seq).toBe(leader.core.state.seq);
    expect(await answersOf(writesOf(next, id))).toEqual(answers);
    expect(next.core.state.seq).toBe(leader.core.state.seq);
    const reused = next.collection('docs').insert({ other: 1 }, { requestId: 'insert' });
    expect((await refusalOf(reused)).code).toBe('REQUEST_ID_REUSED');
    expect(problemsOf(next.core)).toEqual([]);
    expect((await next.verify()).problems).toEqual([]);
  });

  test('a transaction that was committed is not lost', async () => {
    const leader = await scratch.open();
    const transaction = leader.transactions.begin();
    await leader.collection('docs').insert({ n: 1 }, { transaction });
    const committed = await transaction.commit();
    const next = promote(await follow(leader));
    expect(await next.transactions.commit(transaction.id)).toEqual(committed);
  });

  test('are forgotten after ten minutes, however many they are', async () => {
    const leader = await scratch.open();
    const docs = leader.collection('docs');
    const inserts = Array.from({ length: 5_200 }, (_, n) =>
      docs.insert({ n }, { requestId: `${n}` }),
    );
    await Promise.all(inserts);
    const follower = await follow(leader);
    expect(follower.core.store.count('requests')).toBe(5_200);
    scratch.clock.skip(11 * 60_000);
    await follower.sweepExpired();
    expect(follower.core.store.count('requests')).toBe(0);
    expect(follower.core.store.count('expiry')).toBe(0);
  });

  test('of commits that were cut off are forgotten, the others stay', async () => {
    const leader = await scratch.open();
    const docs = leader.collection('docs');
    const first = await docs.insert({ n: 1 }, { requestId: 'first' });
    await docs.insert({ n: 2 }, { requestId: 'second' });
    await docs.deleteMany({ n: 2 }, { requestId: 'third' });
    await leader.cutTail(1);
    expect(leader.core.store.count('requests')).toBe(1);
    expect(leader.core.store.count('expiry')).toBe(1);
    expect(await docs.insert({ n: 1 }, { requestId: 'first' })).toEqual(first);
    expect((await docs.insert({ n: 2 }, { requestId: 'second' })).seq).toBe(2);
  });

  test('a result whose record is not in the commit is refused', async () => {
    const leader = await scratch.open();
    const follower = await scratch.open({ seal });
    await leader.collection('docs').insert({ n: 1 }, { requestId: 'a' });
    await leader.collection('docs').insert({ n: 2 }, { requestId: 'b' });
    const [one, two] = commitsOf(leader).map((commit) => asIncoming(leader, commit));
    const wrong = applyCommit(follower.core, { ...one!, results: two!.results! });
    await expect(wrong).rejects.toThrow('the result of request');
    expect(follower.core.state.seq).toBe(0);
    // A leader of version 0.1.0 sends no results.
    const { results: _results, ...without } = one!;
    await applyCommit(follower.core, without);
    expect(follower.core.store.count('requests')).toBe(0);
  });
});
