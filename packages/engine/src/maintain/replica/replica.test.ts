import { existsSync, readdirSync } from 'node:fs';
import { seededRandom } from '@millrace/kit/random';
import { describe, expect, test } from 'vitest';
import { problemsOf } from '../../../test/consistency.test-support.js';
import { refuse } from '../../value/documents.js';
import { commitsOf, refusalOf, useScratch } from '../../../test/scratch.test-support.js';
import { putDeclaration } from '../../write/catalog-changes.js';
import { lineageOf } from '../../storage/file/tables.js';
import { applyCommit, notedLeaderSeq } from './apply-commit.js';
import { canCut } from './cut-tail.js';
import { asIncoming, collections, randomCommit, recordsOf } from './replica.test-support.js';

const scratch = useScratch();
const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 1_000_000);
const sealed = () => () => refuse('READ_ONLY_REPLICA', 'It follows.', { leader: '' });

describe('commits of a leader', () => {
  test(`make the same database of another one (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const leader = await scratch.open({ collections });
    // Other collections first, so that the numbers inside the files differ.
    const follower = await scratch.open({
      collections: { z: {}, b: collections.b, a: collections.a },
      seal: sealed,
    });
    for (let round = 0; round < 12; round++) {
      for (let i = 0; i < 25; i++) await randomCommit(leader, random, scratch.clock);
      const commits = commitsOf(leader, follower.core.state.seq + 1);
      await Promise.all(
        commits.map((each) => applyCommit(follower.core, asIncoming(leader, each))),
      );
      expect(recordsOf(follower).sort()).toEqual(recordsOf(leader).sort());
      expect(follower.core.durable.chain).toEqual(leader.core.durable.chain);
      expect(problemsOf(follower.core)).toEqual([]);
    }
    expect(commitsOf(follower).map(({ at }) => at)).toEqual(commitsOf(leader).map(({ at }) => at));
    expect((await follower.verify()).problems).toEqual([]);
    expect(follower.core.state.seq).toBeGreaterThan(100);
  });

  test('with an index of an unknown kind are refused, and so is their database', async () => {
    const leader = await scratch.open();
    const follower = await scratch.open({ seal: sealed });
    await leader.collection('docs').insert({ n: 1 });
    const index = { fields: ['n'], kind: 'hologram' as never };
    await leader.transact(({ commit }) =>
      putDeclaration(leader.core, commit, 'index:docs:n', { collection: 'docs', index }),
    );
    const [one, two] = commitsOf(leader).map((commit) => asIncoming(leader, commit));
    await applyCommit(follower.core, one!);
    const reason = 'is of the kind "hologram", which this version does not know: upgrade it';
    await expect(applyCommit(follower.core, two!)).rejects.toThrow(reason);
    expect(follower.core.state.seq).toBe(1);
    expect(recordsOf(follower)).toHaveLength(1);
    await expect(scratch.reopen(leader)).rejects.toThrow(reason);
  });

  test('know how far the leader was, also after a restart', async () => {
    const leader = await scratch.open();
    const follower = await scratch.open({ seal: sealed });
    for (let n = 0; n < 3; n++) await leader.collection('docs').insertWithKey(`k${n}`, { n });
    const [one, two, three] = commitsOf(leader).map((commit) => asIncoming(leader, commit));
    expect(notedLeaderSeq(follower.core)).toBe(0);
    await applyCommit(follower.core, one!);
    expect(notedLeaderSeq(follower.core)).toBe(3);
    await applyCommit(follower.core, { ...two!, leaderSeq: 5 });
    const again = await scratch.reopen(follower, { seal: sealed });
    expect(notedLeaderSeq(again.core)).toBe(5);
    // Of another leader, which may have less, it says nothing.
    await applyCommit(again.core, { ...three!, epoch: three!.epoch + 1, leaderSeq: 3 });
    expect(notedLeaderSeq(again.core)).toBe(0);
  });

  test('that do not follow the last one, or lead elsewhere, leave no trace', async () => {
    const leader = await scratch.open();
    const follower = await scratch.open({ seal: sealed });
    for (let n = 0; n < 3; n++) await leader.collection('docs').insertWithKey(`k${n}`, { n });
    const [one, two, three] = commitsOf(leader).map((commit) => asIncoming(leader, commit));
    await applyCommit(follower.core, one!);
    await expect(applyCommit(follower.core, three!)).rejects.toThrow('Commit 3 of the leader');
    await expect(applyCommit(follower.core, one!)).rejects.toThrow('the last one is 1');
    const forged = structuredClone(two!);
    forged.changes[0]!.after!.data = { n: 7 };
    await expect(applyCommit(follower.core, forged)).rejects.toThrow('the chain breaks');
    const misplaced = { ...two!, changes: [{ ...two!.changes[0]!, op: 'update' as const }] };
    await expect(applyCommit(follower.core, misplaced)).rejects.toThrow('does not fit');
    expect(recordsOf(follower)).toHaveLength(1);
    await applyCommit(follower.core, two!);
    await applyCommit(follower.core, three!);
    expect(recordsOf(follower)).toEqual(recordsOf(leader));
    expect(problemsOf(follower.core)).toEqual([]);
  });
});

describe('a sealed database', () => {
  test('takes no commits of its own, of whatever kind', async () => {
    const directory = scratch.directory();
    const first = await scratch.open({}, directory);
    const docs = first.collection('docs');
    await docs.insertWithKey('a', { n: 1 }, { ttlMs: 100 });
    await docs.insertWithKey('b', { n: 1 });
    const transaction = first.transactions.begin();
    await docs.upsert('b', { n: 2 }, { transaction });
    first.core.sealed = sealed();
    expect((await refusalOf(docs.insert({}))).code).toBe('READ_ONLY_REPLICA');
    expect((await refusalOf(docs.deleteByKey('b'))).code).toBe('READ_ONLY_REPLICA');
    expect((await refusalOf(transaction.commit())).code).toBe('READ_ONLY_REPLICA');
    scratch.clock.skip(200);
    await first.sweepExpired();
    expect(await docs.findByKey('a')).toBeUndefined();
    expect(first.core.state.seq).toBe(2);

    // Nor does the building of an index sweep what is past its time.
    const indexes = [{ fields: ['n'] }];
    const again = await scratch.reopen(first, { collections: { docs: { indexes } }, seal: sealed });
    await again.indexesBuilt();
    expect(again.indexes()[0]!.state).toBe('ready');
    expect(again.core.state.seq).toBe(2);
    expect(problemsOf(again.core)).toEqual([]);
    again.core.sealed = undefined;
    await again.sweepExpired();
    expect(again.core.state.seq).toBe(3);
  });

  test('still forgets answered transactions when their time is up', async () => {
    const db = await scratch.open({ seal: sealed });
    const transaction = db.transactions.begin({ readOnly: true });
    await transaction.commit();
    expect(db.core.store.count('requests')).toBe(1);
    scratch.clock.skip(11 * 60_000);
    await db.sweepExpired();
    expect(db.core.store.count('requests')).toBe(0);
    expect(db.core.store.count('expiry')).toBe(0);
  });
});

describe('cutting the tail', () => {
  test(`goes back to any commit as if the others had never been (seed ${seed})`, async () => {
    const random = seededRandom(seed + 1);
    const db = await scratch.open({ collections });
    const states = [{ seq: 0, chain: db.core.durable.chain, records: recordsOf(db) }];
    for (let step = 0; step < 220; step++) {
      if (random.next() < 0.04) {
        const back = states[random.integer(Math.max(0, states.length - 20), states.length - 1)]!;
        states.length = states.indexOf(back) + 1;
        expect(canCut(db.core, back.seq)).toBe(true);
        await db.cutTail(back.seq);
        expect(recordsOf(db)).toEqual(back.records);
        expect(db.core.durable).toMatchObject({ seq: back.seq, chain: back.chain });
        expect(problemsOf(db.core)).toEqual([]);
      }
      await randomCommit(db, random, scratch.clock);
      const { seq, chain } = db.core.durable;
      if (seq > states.at(-1)!.seq) states.push({ seq, chain, records: recordsOf(db) });
    }
    expect((await db.verify()).problems).toEqual([]);
  });

  test('ends watches that have told of it, and forgets what was answered', async () => {
    const db = await scratch.open();
    const docs = db.collection('docs');
    for (let n = 1; n <= 4; n++) await docs.insert({ n }, { requestId: `r${n}` });
    const [ahead, behind] = [db.watch({ startSeq: 1 }), db.watch({ startSeq: 1 })];
    for (let n = 1; n <= 4; n++) await ahead.next();
    await behind.next();
    await behind.next();
    await db.cutTail(2);
    expect((await refusalOf(ahead.next())).code).toBe('BAD_RESUME_TOKEN');
    const other = await docs.insert({ other: true }, { requestId: 'r3' });
    expect(other.seq).toBe(3);
    const { value } = await behind.next();
    expect(value?.changes).toMatchObject([{ op: 'insert', record: { id: other.id } }]);
    expect(db.watches.size).toBe(1);
  });

  test('is not possible past the end of the log', async () => {
    const db = await scratch.open();
    for (let n = 0; n < 5; n++) await db.collection('docs').insert({ n });
    await db.trimLog(4);
    expect([canCut(db.core, 3), canCut(db.core, 2)]).toEqual([true, false]);
    await expect(db.cutTail(2)).rejects.toThrow('does not reach');
    await db.cutTail(3);
    expect((await db.verify()).problems).toEqual([]);
  });
});

describe('giving way to a copy', () => {
  test('puts the other database in place, history and all', async () => {
    const leader = await scratch.open({ collections });
    for (let n = 0; n < 20; n++) await leader.collection('a').insertWithKey(`k${n}`, { n, u: n });
    const own = await scratch.open();
    await own.collection('old').insert({ n: 1 });
    const header = await own.giveWayTo(leader.backup(), 'The copy');
    expect(header.seq).toBe(20);
    expect(own.isOpen).toBe(false);
    const copy = await scratch.open({ collections, seal: sealed }, own.directory);
    await copy.indexesBuilt();
    expect(recordsOf(copy)).toEqual(recordsOf(leader));
    expect(lineageOf(copy.core.tables)).toBe(lineageOf(leader.core.tables));
    expect(copy.core.durable).toMatchObject({ seq: 20, chain: leader.core.durable.chain });
    expect((await copy.verify()).problems).toEqual([]);
    expect(readdirSync(own.directory).filter((name) => name.endsWith('.mdb'))).toHaveLength(1);
  });

  test('happens only when the copy is whole', async () => {
    const leader = await scratch.open();
    for (let n = 0; n < 5; n++) await leader.collection('docs').insert({ n });
    const own = await scratch.open();
    await own.collection('old').insert({ n: 1 });
    async function* cut() {
      for await (const part of leader.backup()) {
        if (part.kind === 'trailer') throw new Error('The line is dead');
        yield part;
      }
    }
    await expect(own.giveWayTo(cut(), 'The copy')).rejects.toThrow('The line is dead');
    expect(own.isOpen).toBe(true);
    await own.collection('old').insert({ n: 2 });
    expect(readdirSync(own.directory).filter((name) => name.endsWith('.mdb'))).toHaveLength(1);
    const again = await scratch.reopen(own);
    expect(await again.collection('old').count()).toBe(2);
    expect(existsSync(own.directory)).toBe(true);
  });

  test('keeps compactions away meanwhile', async () => {
    const leader = await scratch.open();
    await leader.collection('docs').insert({});
    const own = await scratch.open();
    let compacting: Promise<unknown> | undefined;
    async function* slowly() {
      compacting = refusalOf(own.compact());
      yield* leader.backup();
    }
    await own.giveWayTo(slowly(), 'The copy');
    expect(await compacting).toMatchObject({ code: 'ALREADY_RUNNING' });
  });
});
