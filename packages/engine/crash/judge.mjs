import { open } from '../dist/index.js';
import { checkBatches } from './batches.mjs';
import { accounts, collectionsOf, openingBalance } from './schema.mjs';
import { repeatWrite } from './tasks.mjs';

/** What the judge remembers from round to round. */
export function newMemory() {
  return {
    /** Key to `{ rev, data }` of the records that single writers own. */
    docs: new Map(),
    /** Tags of all transfers that were acknowledged. */
    transfers: new Set(),
    counts: new Map(),
    collections: new Set(),
    batches: new Map(),
  };
}

/** Opens what a killed process left behind. Returns everything that should not be so. */
export async function judge(directory, { entries, memory, withPassing, killedAt }) {
  const problems = [];
  const db = await open(directory, { collections: collectionsOf(withPassing) });
  try {
    await db.indexesBuilt();
    for (const { name, state, problem } of db.indexes()) {
      if (state !== 'ready') problems.push(`index ${name} is ${state}: ${problem}`);
    }
    await checkWhole(db, problems);
    await checkRecords(db, entries, memory, problems);
    await checkTransfers(db, entries, memory, problems);
    await checkCounts(db, entries, memory, problems);
    await checkSessions(db, entries, killedAt, problems);
    await checkCollections(db, entries, memory, problems);
    await checkBatches(db, entries, memory, problems);
  } finally {
    await db.close();
  }
  return problems;
}

/** Records, keys, indexes, expiry and log agree, and the chain over the log is unbroken. */
async function checkWhole(db, problems) {
  const report = await db.verify();
  for (const { kind, where, detail } of report.problems) {
    problems.push(`verify: ${kind} ${where}: ${detail}`);
  }
}

async function checkRecords(db, entries, memory, problems) {
  const docs = db.collection('docs');
  const writes = entries.filter(({ kind }) => kind === 'record');
  for (const { op, key, data, answer } of writes) {
    if (answer && op === 'delete') memory.docs.delete(key);
    else if (answer) memory.docs.set(key, { rev: answer.rev, data });
  }
  const lastOf = (who) => writes.filter((each) => each.who === who && each.answer).at(-1);
  for (const who of new Set(writes.map((each) => each.who))) {
    await checkRepeat(db, lastOf(who), problems);
  }
  // Sent and not answered: done whole or not at all. Repeated, it is done, and once.
  for (const pending of writes.filter(({ answer }) => !answer)) {
    const before = memory.docs.get(pending.key);
    const found = await docs.findByKey(pending.key);
    const fresh = pending.op === 'delete' ? undefined : pending.data;
    if (!sameData(found?.data, before?.data) && !sameData(found?.data, fresh)) {
      problems.push(`${pending.key} is neither as before nor as ${pending.requestId} wanted it`);
    }
    const { rev } = await repeatWrite(db, pending);
    const expected = pending.op === 'delete' ? before?.rev : (before?.rev ?? 0) + 1;
    if (rev !== expected) {
      problems.push(`${pending.requestId} repeated gave rev ${rev}, not ${expected}`);
    }
    if (fresh) memory.docs.set(pending.key, { rev, data: fresh });
    else memory.docs.delete(pending.key);
  }
  for (const [key, { rev, data }] of memory.docs) {
    const found = await docs.findByKey(key);
    if (!found || found.rev !== rev || !sameData(found.data, data)) {
      problems.push(`${key} should be at rev ${rev} and is ${found ? `at ${found.rev}` : 'gone'}`);
    }
  }
}

/** The last answered write of a writer: the same answer, and nothing happens. */
async function checkRepeat(db, write, problems) {
  if (!write) return;
  const before = await db.collection('docs').findByKey(write.key);
  const { id, rev, seq } = await repeatWrite(db, write);
  const after = await db.collection('docs').findByKey(write.key);
  if (JSON.stringify({ id, rev, seq }) !== JSON.stringify(write.answer)) {
    problems.push(`request ${write.requestId} was answered ${JSON.stringify({ id, rev, seq })}`);
  }
  if (before?.seq !== after?.seq) problems.push(`request ${write.requestId} was done again`);
}

async function checkTransfers(db, entries, memory, problems) {
  const sent = entries.filter(({ kind }) => kind === 'transfer');
  for (const { tag, answer } of sent) if (answer?.seq) memory.transfers.add(tag);
  const balances = Array.from({ length: accounts }, () => openingBalance);
  const tags = new Set();
  for (const { data } of await allOf(db, 'journal')) {
    tags.add(data.tag);
    balances[data.from] -= data.amount;
    balances[data.to] += data.amount;
  }
  for (const tag of memory.transfers) {
    if (!tags.has(tag)) problems.push(`the acknowledged transfer ${tag} is not in the journal`);
  }
  const found = await allOf(db, 'accounts');
  for (const { key, data } of found) {
    if (data.balance !== balances[Number(key.slice(1))]) {
      problems.push(
        `${key} has ${data.balance}, its journal says ${balances[Number(key.slice(1))]}`,
      );
    }
  }
  for (const { tag, transaction, answer } of sent) {
    const again = await db.transactions.commit(transaction).catch((error) => error.code);
    if (answer?.seq && JSON.stringify(again) !== JSON.stringify(answer)) {
      problems.push(`the commit of ${tag} was answered ${JSON.stringify(again)} the second time`);
    }
    if (!answer?.seq && tags.has(tag) !== (typeof again === 'object')) {
      problems.push(`${tag} is ${tags.has(tag) ? '' : 'not '}there, its commit says ${again}`);
    }
    if (tags.has(tag)) memory.transfers.add(tag);
  }
}

async function checkCounts(db, entries, memory, problems) {
  for (const { key, answer } of entries.filter(({ kind }) => kind === 'count')) {
    if (answer) memory.counts.set(key, answer.count);
  }
  for (const [key, acknowledged] of memory.counts) {
    const [left, right] = await Promise.all(
      ['left', 'right'].map(async (name) => (await db.collection(name).findByKey(key))?.data.count),
    );
    if (left !== right) problems.push(`${key} counts ${left} left and ${right} right`);
    if (left !== acknowledged && left !== acknowledged + 1) {
      problems.push(`${key} counts ${left} after ${acknowledged} was acknowledged`);
    }
    memory.counts.set(key, left);
  }
}

async function checkSessions(db, entries, killedAt, problems) {
  for (const { key, answer } of entries.filter(({ kind }) => kind === 'session')) {
    if (!answer || answer.expiresAt <= killedAt) continue;
    const view = db.core.snapshot();
    const { id } = db.core.catalog.find('sessions');
    const isThere = view.idOfKey(id, key) !== undefined;
    view.done();
    if (!isThere && answer.expiresAt > Date.now()) {
      problems.push(`the session ${key} is gone before its time`);
    }
  }
  await db.sweepExpired();
}

async function checkCollections(db, entries, memory, problems) {
  for (const { name, answer } of entries.filter(({ kind }) => kind === 'collection')) {
    if (answer) memory.collections.add(name);
  }
  for (const name of memory.collections) {
    if (!(await db.collection(name).findByKey('first'))) problems.push(`${name} is empty`);
  }
}

async function allOf(db, name) {
  const view = db.core.snapshot();
  try {
    const collection = db.core.catalog.find(name);
    const images = Array.from(view.scan(collection.id, {}, () => true));
    return images.map(({ key, data }) => ({ key, data }));
  } finally {
    view.done();
  }
}

function sameData(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
