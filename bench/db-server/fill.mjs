/** The same records on each server before the loads begin: `people` by city, and one by key. */
import { createRequire } from 'node:module';
import { connect } from '@millrace/db/client';
import { document, etcdPut } from './messages.mjs';
import grpc from '@grpc/grpc-js';

const require = createRequire(import.meta.url);
const underWay = 200;

export async function fillMillrace({ grpc: url }, records) {
  const client = await connect(url.replace(/^http:/, 'grpc:'));
  await client.collection('keyed').insertWithKey('k1', document(1));
  const people = client.collection('people');
  await inParallel(records, (number) => people.insert(document(number)));
  await client.close();
}

export async function fillEtcd({ grpc: url }, records) {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  const same = (bytes) => Buffer.from(bytes);
  const put = (key, value) =>
    new Promise((resolve, reject) => {
      const done = (error) => (error ? reject(error) : resolve());
      const bytes = etcdPut(key, JSON.stringify(value));
      client.makeUnaryRequest('/etcdserverpb.KV/Put', same, same, bytes, done);
    });
  await put('k1', document(1));
  await inParallel(records, (number) => {
    const data = document(number);
    return put(`${data.city}/${String(number).padStart(8, '0')}`, data);
  });
  client.close();
}

export async function fillPostgres({ connection }, records) {
  const pg = require('pg');
  const client = new pg.Client(connection);
  await client.connect();
  for (const table of ['writes', 'people']) {
    await client.query(`create table ${table} (id bigserial primary key, data jsonb not null)`);
  }
  await client.query('create table keyed (key text primary key, data jsonb not null)');
  await client.query(`create index people_city on people ((data->>'city'))`);
  await client.query('insert into keyed values ($1, $2)', ['k1', document(1)]);
  for (let from = 0; from < records; from += 1_000) {
    const rows = Array.from({ length: Math.min(1_000, records - from) }, (_, i) =>
      JSON.stringify(document(from + i)),
    );
    await client.query('insert into people (data) select unnest($1::jsonb[])', [rows]);
  }
  await client.query('analyze');
  await client.end();
}

async function inParallel(count, act) {
  let next = 0;
  const worker = async () => {
    while (next < count) await act(next++);
  };
  await Promise.all(Array.from({ length: underWay }, worker));
}
