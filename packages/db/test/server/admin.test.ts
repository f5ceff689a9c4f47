import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { open, restore } from '@millrace/db';
import { freshName, recordOf, useServer } from './support/both.js';
import type { Message } from './support/proto.js';
import { RestClient } from './support/rest.js';
import { startServer } from './support/server.js';

const both = useServer({
  collections: '{people: {indexes: [{fields: [email], unique: true}], default_ttl_ms: 3600000}}',
});
const scratch = mkdtempSync(join(tmpdir(), 'mr-admin-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test('status: a single leader reports every field', async () => {
  const { rest, grpc } = both;
  const made = recordOf(await rest.ok('POST', '/v1/people/records', { data: { email: 'a@b.c' } }));
  const status = await rest.ok('GET', '/v1/admin/replication');
  expect(status).toMatchObject({
    role: 'leader',
    state: 'leading',
    epoch: 1,
    seq: made['seq'],
    durable_seq: made['seq'],
    leader_seq: made['seq'],
    oldest_seq: 1,
    leader_address: '',
    lag: 0,
    lag_time: '0s',
    followers: [],
    durability: 'full',
    min_acks: 0,
    saved_tails: [],
    collections: [],
  });
  expect(status['lineage_id']).toMatch(/^[0-9a-f]{32}$/);
  expect(status['node_id']).toMatch(/^[0-9A-Z]{26}$/);
  expect(status['version']).toMatch(/^\d+\.\d+\.\d+/);
  const overGrpc = await grpc.call('ReplicationStatus', { include_collections: true });
  expect(overGrpc).toMatchObject({
    node_id: status['node_id'],
    collections: [
      {
        name: 'people',
        records: 1,
        indexes: [
          { name: 'email', fields: ['email'], unique: true, sparse: false, state: 'ready' },
        ],
        default_ttl: { seconds: 3600 },
      },
    ],
  });
  const withCollections = await rest.ok('GET', '/v1/admin/replication?include_collections=true');
  expect(withCollections['collections']).toMatchObject([{ records: 1, default_ttl: '3600s' }]);
});

test('status: an index that cannot be built is failed', async () => {
  const data = join(scratch, 'doubles');
  const before = await open(data);
  for (let n = 0; n < 2; n++) await before.collection('people').insert({ email: 'a@b.c' });
  await before.close();
  const collections = '{people: {indexes: [{fields: [email], unique: true}]}}';
  const server = await startServer({ collections }, data);
  const rest = new RestClient(server.http);
  const path = '/v1/admin/replication?include_collections=true';
  const shown = async () => (await rest.ok('GET', path))['collections'];
  const failed = [{ name: 'people', indexes: [{ name: 'email', state: 'failed' }] }];
  await expect.poll(shown, { timeout: 60_000 }).toMatchObject(failed);
  await server.dispose();
});

test('status: durability strict is an alias of full', async () => {
  const strict = await startServer({ durability: 'strict' });
  const rest = new RestClient(strict.http);
  expect(await rest.ok('GET', '/v1/admin/replication')).toMatchObject({ durability: 'full' });
  await strict.dispose();
});

test('promote: does nothing on a leader', async () => {
  const { rest, grpc } = both;
  const before = await rest.ok('GET', '/v1/admin/replication');
  expect(await rest.ok('POST', '/v1/admin:promote')).toEqual({
    role: 'leader',
    epoch: before['epoch'],
    seq: before['seq'],
    lag: 0,
  });
  expect(await grpc.call('Promote', { force: true })).toMatchObject({ role: 'leader', epoch: 1 });
});

test('compact: trims and rewrites online', async () => {
  const collection = freshName();
  const { rest, grpc } = both;
  const text = 'x'.repeat(10_000);
  for (let n = 0; n < 50; n++) {
    await rest.ok('POST', `/v1/${collection}/keys/k${n}:upsert`, { data: { n, text } });
  }
  // A preview folds the log into the file; what is deleted then leaves empty pages in it.
  await rest.ok('POST', '/v1/admin:compact', { dry_run: true });
  const filter = { field: 'n', op: 'lt', value: 49 };
  await rest.ok('POST', `/v1/${collection}/records:deleteMany`, { filter });
  const { seq } = await rest.ok('GET', '/v1/admin/replication');
  const dry = await rest.ok('POST', '/v1/admin:compact', { dry_run: true, trim_before_seq: seq });
  expect(dry).toMatchObject({ oldest_seq: seq });
  expect((await rest.ok('GET', '/v1/admin/replication'))['oldest_seq']).toBe(1);
  const done = await grpc.call('Compact', { trim_before_seq: seq });
  expect(done).toMatchObject({ oldest_seq: seq });
  expect(Number(done['bytes_after'])).toBeLessThan(Number(done['bytes_before']));
  expect(await rest.ok('GET', `/v1/${collection}/keys/k49?fields=n`)).toMatchObject({
    record: { data: { n: 49 } },
  });
  const again = await rest.ok('POST', '/v1/admin:compact', {});
  expect(again['elapsed']).toMatch(/^\d+(\.\d+)?s$/);
  const metrics = await rest.send('GET', '/metrics');
  expect(metrics.text).toMatch(/millrace_db_fsync_duration_seconds_count [1-9]/);
});

test('backup: gRPC streams header, data and trailer with the checksum', async () => {
  const { rest, grpc } = both;
  const { seq, lineage_id: lineage } = await rest.ok('GET', '/v1/admin/replication');
  const parts = await grpc.collect('Backup');
  expect(parts[0]).toMatchObject({
    part: 'header',
    header: {
      format_version: 1,
      seq,
      epoch: 1,
      lineage_id: lineage,
      format: 'BACKUP_FORMAT_SNAPSHOT',
      since_seq: 0,
    },
  });
  const hash = createHash('sha256');
  let bytes = 0;
  for (const { data } of parts.slice(1, -1)) {
    hash.update(data as Buffer);
    bytes += (data as Buffer).length;
  }
  expect(parts.at(-1)).toMatchObject({ trailer: { bytes, sha256: hash.digest('hex') } });
});

test('backup: REST returns a file that restores', async () => {
  const collection = freshName();
  const { rest, server } = both;
  const made = recordOf(
    await rest.ok('POST', `/v1/${collection}/keys`, { key: 'a', data: { n: 1 } }),
  );
  const response = await fetch(`${server.http}/v1/admin:backup`, { method: 'POST' });
  expect(response.headers.get('content-type')).toBe('application/octet-stream');
  const file = join(scratch, 'backup');
  writeFileSync(file, Buffer.from(await response.arrayBuffer()));
  const home = join(scratch, 'restored');
  await restore([file], home);
  const restored = await open(home);
  const record = await restored.collection(collection).findByKey('a');
  expect(record).toMatchObject({ id: made['id'], rev: 1, data: { n: 1 }, seq: made['seq'] });
  await restored.close();
});

test('backup: NDJSON has a line per record of the requested collections', async () => {
  const collection = freshName();
  const { rest } = both;
  await rest.ok('POST', `/v1/${collection}/keys`, { key: 'a', data: { n: 1 } });
  await rest.ok('POST', `/v1/${collection}/keys`, { key: 'b', data: { n: 2 } });
  const body = { format: 'NDJSON', collections: [collection] };
  const { text } = await rest.send('POST', '/v1/admin:backup', body);
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Message);
  expect(lines.map(({ key, data }) => [key, data])).toEqual([
    ['a', { n: 1 }],
    ['b', { n: 2 }],
  ]);
  const wrong = await rest.refusal('POST', '/v1/admin:backup', { format: 'TAR' });
  expect(wrong.message).toContain('SNAPSHOT, NDJSON');
});

test('backup: an incremental backup needs the log back to its start', async () => {
  const { rest, grpc } = both;
  const { oldest_seq: oldest } = await rest.ok('GET', '/v1/admin/replication');
  expect(Number(oldest)).toBeGreaterThan(3);
  const refused = await grpc.refusal('Backup', { since_seq: 1 });
  expect(refused).toMatchObject({ code: 'OUT_OF_RANGE', reason: 'WATCH_COMPACTED' });
  const [header] = await grpc.collect('Backup', { since_seq: oldest });
  expect(header!['header']).toMatchObject({ since_seq: oldest });
});
