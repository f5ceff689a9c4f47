import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import * as operations from '../dist/write/mutations.js';
import { writeBatches } from './batches.mjs';
import { accounts, bulkRecords, openingBalance } from './schema.mjs';

/**
 * What the process does until it is killed: writers of every kind side by side. Each has keys of
 * its own, so that the ledger tells exactly what must be there.
 */
export function startTasks(db, { ledger, random, round, special, directory }) {
  const context = { db, ledger, random, round, directory };
  const tasks = [
    ...Array.from({ length: 4 }, (_, who) => writeRecords(context, who)),
    ...Array.from({ length: 3 }, (_, who) => transfer(context, who)),
    ...Array.from({ length: 2 }, (_, who) => countBothSides(context, who)),
    writeSessions(context),
    fightForBadges(context),
    makeCollections(context),
    changeBulk(context),
    writeBatches(context),
  ];
  if (special === 'compact') tasks.push(compactOften(context));
  if (special === 'backup') tasks.push(backUpOften(context));
  return tasks;
}

/** Sets the accounts and the bulk up, once in the life of a database. */
export async function setUp(db) {
  const bulk = db.collection('bulk');
  if (!(await bulk.findByKey(`b${bulkRecords - 1}`))) {
    const one = (n) => bulk.upsert(`b${n}`, { n, half: n >> 1, tags: ['t', `t${n % 11}`] });
    await Promise.all(Array.from({ length: bulkRecords }, (_, n) => one(n)));
  }
  for (let i = 0; i < accounts; i++) {
    const collection = db.collection('accounts');
    if (await collection.findByKey(`a${i}`)) continue;
    await collection.insertWithKey(`a${i}`, { balance: openingBalance });
  }
}

/** One writer of single records, each write with a request id. */
async function writeRecords({ db, ledger, random, round }, who) {
  const docs = db.collection('docs');
  const now = new Map();
  for (let i = 0; i < 4; i++) {
    const key = `w${who}-${i}`;
    now.set(key, (await docs.findByKey(key))?.rev ?? 0);
  }
  for (let n = 0; ; n++) {
    const key = `w${who}-${random.integer(0, 3)}`;
    const rev = now.get(key);
    const data = documentOf(random, who, key, round * 100_000 + n);
    const call = { requestId: `${round}-${who}-${n}` };
    const [op, write] =
      random.integer(0, 4) === 0 && rev > 0
        ? ['delete', () => docs.deleteByKey(key, call)]
        : pickWrite(docs, random, { key, rev, data, call });
    const number = ledger.sent('record', { who, op, key, data, rev, requestId: call.requestId });
    const { id, rev: after, seq } = await write();
    ledger.answered(number, { id, rev: after, seq });
    now.set(key, op === 'delete' ? 0 : after);
  }
}

function documentOf(random, who, key, n) {
  const tags = Array.from({ length: random.integer(0, 3) }, () => `t${random.integer(0, 9)}`);
  const pad = 'x'.repeat(random.integer(0, 20) === 0 ? 60_000 : random.integer(0, 400));
  return { who, n, tags, email: `${key}@x`, place: [who, n], pad };
}

function pickWrite(docs, random, { key, rev, data, call }) {
  const writes =
    rev === 0
      ? [
          ['insertWithKey', () => docs.insertWithKey(key, data, call)],
          ['updateIfRev', () => docs.updateIfRev({ key }, 0, data, call)],
        ]
      : [
          ['updateByKey', () => docs.updateByKey(key, data, call)],
          ['mergeByKey', () => docs.mergeByKey(key, data, call)],
          ['updateIfRev', () => docs.updateIfRev({ key }, rev, data, call)],
        ];
  writes.push(['upsert', async () => (await docs.upsert(key, data, call)).record]);
  return writes[random.integer(0, writes.length - 1)];
}

/** Repeats a write of `writeRecords` as a client would that never heard the answer. */
export async function repeatWrite(db, { op, key, data, rev, requestId }) {
  const docs = db.collection('docs');
  const call = { requestId };
  switch (op) {
    case 'delete':
      return docs.deleteByKey(key, call);
    case 'updateIfRev':
      return docs.updateIfRev({ key }, rev, data, call);
    case 'upsert':
      return (await docs.upsert(key, data, call)).record;
    default:
      return docs[op](key, data, call);
  }
}

/** Moves money between accounts and keeps a journal of it, in one transaction. */
async function transfer({ db, ledger, random, round }, who) {
  const book = db.collection('accounts');
  for (let n = 0; ; n++) {
    const from = random.integer(0, accounts - 1);
    const to = (from + random.integer(1, accounts - 1)) % accounts;
    const amount = random.integer(1, 50);
    const tag = `${round}-${who}-${n}`;
    const transaction = db.transactions.begin();
    const inside = { transaction };
    const [a, b] = [
      await book.findByKey(`a${from}`, inside),
      await book.findByKey(`a${to}`, inside),
    ];
    await book.updateByKey(`a${from}`, { balance: a.data.balance - amount }, inside);
    await db.collection('journal').insert({ from, to, amount, tag }, inside);
    await book.updateByKey(`a${to}`, { balance: b.data.balance + amount }, inside);
    const number = ledger.sent('transfer', { tag, transaction: transaction.id });
    try {
      ledger.answered(number, await db.transactions.commit(transaction.id));
    } catch (error) {
      if (error.code !== 'TX_CONFLICT') throw error;
      ledger.answered(number, { conflict: true });
    }
  }
}

/** Counts up in two collections at once, as a step inside the writer. */
async function countBothSides({ db, ledger }, who) {
  const key = `c${who}`;
  const sides = ['left', 'right'].map((name) => db.core.catalog.find(name));
  for (;;) {
    const number = ledger.sent('count', { key });
    const count = await db.transact((target) => {
      const next = (target.byKey(sides[0], key)?.data.count ?? 0) + 1;
      for (const side of sides) operations.upsert(target, side, key, { data: { count: next } });
      return next;
    });
    ledger.answered(number, { count });
  }
}

/** Records that live a moment, and the sweeper that removes them. */
async function writeSessions({ db, ledger, random, round }) {
  const sessions = db.collection('sessions');
  for (let n = 0; ; n++) {
    const key = `${round}-${n}`;
    const ttlMs = random.integer(1, 300);
    const number = ledger.sent('session', { key });
    const { expiresAt } = await sessions.insertWithKey(key, { user: n % 7 }, { ttlMs });
    ledger.answered(number, { expiresAt: expiresAt.getTime() });
    if (n % 10 === 0) await db.sweepExpired();
  }
}

/** Two of them want the same unique values and give them up again. */
async function fightForBadges({ db, random }) {
  const badges = db.collection('badges');
  const one = async () => {
    for (;;) {
      try {
        const { id } = await badges.insert({ badge: random.integer(0, 9) });
        if (random.integer(0, 2) > 0) await badges.delete(id);
      } catch (error) {
        if (error.code !== 'UNIQUE_VIOLATION') throw error;
        const { records } = await badges.find({ limit: 5 });
        for (const { id } of records) await badges.delete(id).catch(onlyNotFound);
      }
    }
  };
  await Promise.all([one(), one()]);
}

function onlyNotFound(error) {
  if (error.code !== 'RECORD_NOT_FOUND') throw error;
}

/** Collections that come into being with their first record. */
async function makeCollections({ db, ledger, random, round }) {
  for (let n = 0; n < 20; n++) {
    const name = `fresh.${round}.${n}`;
    const number = ledger.sent('collection', { name });
    await db.collection(name).insertWithKey('first', { n });
    ledger.answered(number, {});
    await new Promise((resolve) => setTimeout(resolve, random.integer(0, 30)));
  }
}

/** Changes that meet the build of an index in the middle. */
async function changeBulk({ db, random }) {
  const bulk = db.collection('bulk');
  for (;;) {
    const n = random.integer(0, bulkRecords - 1);
    await bulk.upsert(`b${n}`, { n, half: n >> 1, tags: [`t${random.integer(0, 10)}`] });
  }
}

async function compactOften({ db, random }) {
  for (;;) {
    const trimBeforeSeq = random.integer(0, 1) * Math.max(0, db.core.durable.seq - 500);
    await db.compact({ trimBeforeSeq });
  }
}

async function backUpOften({ db, ledger, directory, round }) {
  const folder = join(directory, '..', 'backups');
  mkdirSync(folder, { recursive: true });
  for (let n = 0; ; n++) {
    const file = join(folder, `${round}-${n}.backup`);
    const number = ledger.sent('backup', { file });
    const { header } = await db.writeBackup(file);
    ledger.answered(number, { seq: header.seq });
  }
}
