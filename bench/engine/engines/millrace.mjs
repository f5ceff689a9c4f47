/** Millrace's own engine, as a program in the same process uses it. */
import { open as openDatabase } from '@millrace/db';
import { toDocument } from '../../../packages/engine/dist/value/documents.js';
import { EntryEncoder } from '../../../packages/engine/dist/format/encoding.js';
import { readId } from '../../../packages/engine/dist/format/keys.js';

export async function open(directory, tables) {
  const collections = {};
  for (const [name, fields] of Object.entries(tables)) {
    collections[name] = { indexes: fields.map((field) => ({ fields: [field].flat() })) };
  }
  const database = await openDatabase(directory, { collections });
  await database.indexesBuilt();
  return new Millrace(database, Object.keys(tables));
}

class Millrace {
  constructor(database, names) {
    this.database = database;
    this.tables = Object.fromEntries(names.map((name) => [name, database.collection(name)]));
  }

  insert(name, doc) {
    return this.tables[name].insert(doc);
  }

  /** One commit for all, as the peers do it. */
  async load(name, docs) {
    const collection = await this.database.core.ensureCollection(name);
    const checked = docs.map(toDocument);
    return this.database.transact((target) =>
      checked.map((data) => {
        const id = target.newId();
        target.store(collection, id, undefined, target.encode(data), { key: '', expiresAt: 0 });
        return id;
      }),
    );
  }

  /** Synchronous, as the peers in the same process are. */
  get(id) {
    return this.tables.people.getSync(id)?.data;
  }

  async find(city, limit) {
    const filter = { field: 'city', op: 'eq', value: city };
    const { records } = await this.tables.people.find({ filter, limit });
    return records.map(({ data }) => data);
  }

  async filter(age) {
    const filter = { field: 'age', op: 'eq', value: age };
    const found = [];
    for await (const { data } of this.tables.people.stream({ filter })) found.push(data);
    return found.length;
  }

  async aggregate() {
    const { groups } = await this.tables.people.aggregate({
      groupBy: ['age'],
      aggregates: [
        { name: 'count', op: 'count' },
        { name: 'average', op: 'avg', field: 'score' },
      ],
    });
    return groups.map(({ key, values }) => ({ ...key, ...values }));
  }

  /** As a queue on this engine does it: one atomic step in the writer for a batch of tasks. */
  claim(now, limit) {
    const { core } = this.database;
    return this.database.transact((target) => {
      const tasks = core.catalog.find('tasks');
      const due = { start: dueBound(0), end: dueBound(now + 1) };
      const ids = [];
      target.view.entries(tasks.indexes[0].id, due, (bytes, _start, idAt) => {
        return ids.push(readId(bytes, idAt)) === limit;
      });
      return ids.map((id) => {
        const { data } = move(target, tasks, id, 'due', 'in_flight', now + 30_000);
        return { id, ...data };
      });
    });
  }

  complete(tasks, now) {
    const { core } = this.database;
    return this.database.transact((target) => {
      const collection = core.catalog.find('tasks');
      for (const { id } of tasks) move(target, collection, id, 'in_flight', 'done', now);
    });
  }

  countDone() {
    return this.database.transact(({ view }) => {
      const [index] = this.database.core.catalog.find('tasks')?.indexes ?? [];
      const done = { start: bound('done', 0), end: bound('done', Infinity) };
      let count = 0;
      if (index) view.entries(index.id, done, () => ++count < 0);
      return count;
    });
  }

  async close() {
    await this.database.close();
  }
}

function move(target, collection, id, from, state, dueAt) {
  const before = target.byId(collection, id);
  if (before?.data.state !== from) throw new Error(`task ${id} is ${before?.data.state}`);
  const document = target.encode({ ...before.data, state, due_at: dueAt });
  const { key, expiresAt } = before;
  return target.store(collection, id, before, document, { key, expiresAt });
}

const encoder = new EntryEncoder(2);

function dueBound(time) {
  return bound('due', time);
}

function bound(state, time) {
  return encoder.begin().value(state).value(time).end();
}
