/**
 * Each database with the client library that its users have, behind one interface: insert, read by
 * key, bulk and find. Every write is on disk before it is answered.
 */
import { createRequire } from 'node:module';
import { document, etcdCalls, etcdPut } from '../db-server/messages.mjs';

const require = createRequire(import.meta.url);
/** A PostgreSQL pool; more connections than cores do not help. */
const poolSize = 64;
const keyOf = (number) => `k${number}`;

export const contestants = {
  async millrace({ url }) {
    const { connect } = await import('@millrace/db/client');
    const db = await connect(url);
    const [writes, people, keyed] = ['writes', 'people', 'keyed'].map((name) =>
      db.collection(name),
    );
    return {
      insert: (number) => writes.insert(document(number)),
      read: (number) => keyed.findByKey(keyOf(number)),
      bulk: (numbers) =>
        writes.bulkWrite(
          numbers.map((number) => ({ insert: { data: document(number) } })),
          { atomic: true },
        ),
      find: async (city) => (await people.find({ filter: { city }, limit: 100 })).records.length,
      fill: async (numbers) => {
        await people.insertMany(numbers.map(document));
        const upserts = numbers.map((n) => ({ upsert: { key: keyOf(n), data: document(n) } }));
        await keyed.bulkWrite(upserts, { atomic: true });
      },
      close: () => db.close(),
    };
  },

  async pg({ connection }) {
    const pg = require('pg');
    const pool = new pg.Pool({ ...connection, max: poolSize });
    const ask = (name, text, values) => pool.query({ name, text, values });
    const many = 'select unnest($1::jsonb[])';
    const jsonOf = (numbers) => numbers.map((number) => JSON.stringify(document(number)));
    return {
      prepare: () => pool.query(tables),
      insert: (number) =>
        ask('insert', 'insert into writes (data) values ($1) returning *', [document(number)]),
      read: (number) => ask('read', 'select * from keyed where key = $1', [keyOf(number)]),
      bulk: (numbers) => ask('bulk', `insert into writes (data) ${many}`, [jsonOf(numbers)]),
      find: async (city) => (await ask('find', findText, [city])).rows.length,
      fill: async (numbers) => {
        await ask('fill', `insert into people (data) ${many}`, [jsonOf(numbers)]);
        const keys = numbers.map(keyOf);
        await ask('keys', `insert into keyed select unnest($2::text[]), unnest($1::jsonb[])`, [
          jsonOf(numbers),
          keys,
        ]);
      },
      close: () => pool.end(),
    };
  },

  async postgres({ connection }) {
    const { default: postgres } = await import('postgres');
    const sql = postgres({ ...connection, max: poolSize, onnotice: () => undefined });
    return {
      insert: (number) =>
        sql`insert into writes (data) values (${sql.json(document(number))}) returning *`,
      read: (number) => sql`select * from keyed where key = ${keyOf(number)}`,
      bulk: (numbers) => {
        const rows = numbers.map((number) => ({ data: sql.json(document(number)) }));
        return sql`insert into writes ${sql(rows, 'data')}`;
      },
      find: async (city) =>
        (await sql`select * from people where data->>'city' = ${city} limit 100`).length,
      close: () => sql.end(),
    };
  },

  async etcd({ url }) {
    const { default: grpc } = await import('@grpc/grpc-js');
    const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
    const same = (bytes) => bytes;
    const call = (method, bytes) =>
      new Promise((resolve, reject) => {
        const done = (error, answer) => (error ? reject(error) : resolve(answer));
        client.makeUnaryRequest(`/etcdserverpb.KV/${method}`, same, same, bytes, done);
      });
    // Without the frame, which grpc-js writes.
    const bodyOf = ({ body }) => body.subarray(5);
    const put = (key, number) => call('Put', etcdPut(key, JSON.stringify(document(number))));
    return {
      insert: (number) => put(`write/${number}`, number),
      read: (number) => call('Range', bodyOf(etcdCalls.read(keyOf(number)))),
      find: (city) => call('Range', bodyOf(etcdCalls.find(city))),
      fill: (numbers) =>
        Promise.all(
          numbers.flatMap((number) => [
            put(`${document(number).city}/${String(number).padStart(8, '0')}`, number),
            put(keyOf(number), number),
          ]),
        ),
      close: () => client.close(),
    };
  },

  async sqlite({ file }) {
    const Database = require('better-sqlite3');
    const db = new Database(file);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.exec(`
      create table if not exists writes (id integer primary key, data text not null);
      create table if not exists people (id integer primary key, data text not null);
      create table if not exists keyed (key text primary key, data text not null);
      create index if not exists people_city on people (json_extract(data, '$.city'));
    `);
    const insert = db.prepare('insert into writes (data) values (?)');
    const read = db.prepare('select * from keyed where key = ?');
    const find = db.prepare(
      "select * from people where json_extract(data, '$.city') = ? limit 100",
    );
    const person = db.prepare('insert into people (data) values (?)');
    const key = db.prepare('insert or replace into keyed values (?, ?)');
    const text = (number) => JSON.stringify(document(number));
    return {
      // It is synchronous: one transaction for each insert.
      insert: async (number) => insert.run(text(number)),
      read: async (number) => JSON.parse(read.get(keyOf(number)).data),
      bulk: async (numbers) =>
        db.transaction(() => numbers.forEach((number) => insert.run(text(number))))(),
      find: async (city) => find.all(city).map(({ data }) => JSON.parse(data)).length,
      fill: async (numbers) =>
        db.transaction(() => {
          for (const number of numbers) {
            person.run(text(number));
            key.run(keyOf(number), text(number));
          }
        })(),
      close: () => db.close(),
    };
  },
};

const findText = "select * from people where data->>'city' = $1 limit 100";
const tables = `
  create table writes (id bigserial primary key, data jsonb not null);
  create table people (id bigserial primary key, data jsonb not null);
  create table keyed (key text primary key, data jsonb not null);
  create index people_city on people ((data->>'city'));
`;
