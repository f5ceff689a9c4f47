/**
 * lmdb by hand: msgpack records with shared structures, one more table per index whose keys are
 * [value, id]. A durable write is the promise of `put` or `batch`, then its `flushed`.
 */
import { open as openLmdb } from 'lmdb';
import { systemRandom } from '@millrace/kit/random';
import { join } from 'node:path';

const highest = Buffer.from([0xff]);

export async function open(directory, tables) {
  const root = openLmdb({ path: join(directory, 'raw.mdb'), separateFlushed: true, maxDbs: 24 });
  const opened = {};
  for (const [name, fields] of Object.entries(tables)) {
    const table = openTable(root, name, fields);
    await buildIndexes(root, table);
    opened[name] = table;
  }
  return new RawLmdb(root, opened);
}

function openTable(root, name, fields) {
  return {
    records: root.openDB({ name, sharedStructuresKey: Symbol.for('structures') }),
    indexes: fields.map((field) => ({
      pick: (doc) => (Array.isArray(field) ? field.map((each) => doc[each]) : [doc[field]]),
      entries: root.openDB({ name: `${name}:${field}`, encoding: 'binary' }),
    })),
  };
}

const nothing = Buffer.alloc(0);

async function buildIndexes(root, { records, indexes }) {
  for (const { entries, pick } of indexes) {
    if (entries.getCount({ limit: 1 }) > 0) continue;
    let batch = [];
    const write = () => root.batch(() => batch.forEach((key) => entries.put(key, nothing)));
    for (const { key, value } of records.getRange({ snapshot: false })) {
      batch.push([...pick(value), key]);
      if (batch.length < 1_000) continue;
      await write();
      batch = [];
    }
    if (batch.length > 0) await durable(write());
  }
}

async function durable(written) {
  await written;
  await written.flushed;
}

class RawLmdb {
  #claiming = Promise.resolve();

  constructor(root, tables) {
    this.root = root;
    this.tables = tables;
  }

  insert(name, doc) {
    const table = this.tables[name];
    const id = systemRandom.ulid(Date.now());
    if (table.indexes.length === 0) return durable(table.records.put(id, doc));
    return durable(this.root.batch(() => putWithIndexes(table, id, doc)));
  }

  async load(name, docs) {
    const table = this.tables[name];
    const ids = docs.map(() => systemRandom.ulid(Date.now()));
    await durable(
      this.root.batch(() => docs.forEach((doc, i) => putWithIndexes(table, ids[i], doc))),
    );
    return ids;
  }

  get(id) {
    return this.tables.people.records.get(id);
  }

  find(city, limit) {
    const { records, indexes } = this.tables.people;
    const found = [];
    for (const key of indexes[0].entries.getKeys({ start: [city], end: [city, highest], limit })) {
      found.push(records.get(key[1]));
    }
    return found;
  }

  filter(age) {
    const found = [];
    for (const { value } of this.tables.people.records.getRange()) {
      if (value.age === age) found.push(value);
    }
    return found.length;
  }

  aggregate() {
    const groups = new Map();
    for (const { value } of this.tables.people.records.getRange()) {
      let group = groups.get(value.age);
      if (!group) groups.set(value.age, (group = { count: 0, sum: 0 }));
      group.count++;
      group.sum += value.score;
    }
    return Array.from(groups, ([age, { count, sum }]) => ({ age, count, average: sum / count }));
  }

  /** Reads see committed rows only, so one claim waits until the one before it is visible. */
  claim(now, limit) {
    const claimed = this.#claiming.then(() => this.#claim(now, limit));
    this.#claiming = claimed.then(({ written }) => written);
    return claimed.then(async ({ tasks, written }) => {
      if (written) await durable(written);
      return tasks;
    });
  }

  #claim(now, limit) {
    const { records, indexes } = this.tables.tasks;
    const { entries } = indexes[0];
    const range = { start: ['due'], end: ['due', now + 1], limit };
    const ids = entries.getKeys(range).map((key) => key[2]).asArray;
    if (ids.length === 0) return { tasks: [], written: undefined };
    const tasks = ids.map((id) => ({ id, ...records.get(id) }));
    const written = this.root.batch(() => {
      for (const { id, ...doc } of tasks) this.#move(id, doc, 'in_flight', now + 30_000);
    });
    return { tasks, written };
  }

  async complete(tasks, now) {
    const { records } = this.tables.tasks;
    const docs = tasks.map(({ id }) => records.get(id));
    await durable(
      this.root.batch(() => tasks.forEach(({ id }, i) => this.#move(id, docs[i], 'done', now))),
    );
  }

  #move(id, doc, state, dueAt) {
    const { records, indexes } = this.tables.tasks;
    const { entries } = indexes[0];
    entries.remove([doc.state, doc.due_at, id]);
    records.put(id, { ...doc, state, due_at: dueAt });
    entries.put([state, dueAt, id], nothing);
  }

  countDone() {
    const { entries } = this.tables.tasks.indexes[0];
    return entries.getKeysCount({ start: ['done'], end: ['done', highest] });
  }

  async close() {
    await this.root.close();
  }
}

function putWithIndexes({ records, indexes }, id, doc) {
  records.put(id, doc);
  for (const { entries, pick } of indexes) entries.put([...pick(doc), id], nothing);
}
