import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@millrace/db/client';
import { UsageError } from '@millrace/kit/errors';
import { afterEach, expect, test } from 'vitest';
import { RestClient } from './support/rest.js';
import { startServer, type TestServer } from './support/server.js';

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function start(flags: Record<string, string> = {}, data?: string): Promise<TestServer> {
  const server = await startServer({ auth: 'keys', ...flags }, data);
  closing.push(() => server.dispose());
  return server;
}

const keyOf = ({ data }: TestServer) => readFileSync(join(data, 'db.key'), 'utf8').trim();
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

test('owner key: the first start creates it for its owner alone and the next start keeps it', async () => {
  const data = mkdtempSync(join(tmpdir(), 'mr-db-'));
  const first = await startServer({ auth: 'keys' }, data);
  const key = keyOf(first);
  expect(readFileSync(join(data, 'db.key'), 'utf8')).toMatch(/^[^.\s]+\.[^\s]+\n$/);
  expect(modeOf(join(data, 'db.key'))).toBe('600');
  await first.stop();
  const second = await start({}, data);
  expect(keyOf(second)).toBe(key);
});

test('owner key: REST and gRPC need it, and the socket does not', async () => {
  const server = await start();
  const open = new RestClient(server.http);
  expect(await open.refusal('POST', '/v1/c/records', { data: {} })).toMatchObject({ status: 401 });
  const owner = new RestClient(server.http, { 'x-api-key': keyOf(server) });
  expect((await owner.send('POST', '/v1/c/records', { data: {} })).status).toBe(200);
  expect((await owner.send('GET', '/v1/admin/replication')).body).toMatchObject({ auth: 'keys' });

  const grpc = `grpc://${server.grpc}`;
  const stranger = await connect(grpc);
  closing.push(() => stranger.close());
  await expect(stranger.status()).rejects.toMatchObject({ code: 'MISSING_KEY' });
  for (const [url, key] of [
    [grpc, keyOf(server)],
    [server.socket, undefined],
  ] as const) {
    const client = await connect(url, { key });
    closing.push(() => client.close());
    await client.collection('c').insert({});
  }
});

test('owner key: auth none needs no key and the status reports it', async () => {
  const server = await start({ auth: 'none' });
  const open = new RestClient(server.http);
  expect((await open.send('GET', '/v1/admin/replication')).body).toMatchObject({ auth: 'none' });
  expect(server.log.lines).toContainEqual(
    expect.objectContaining({ message: expect.stringContaining('authentication is off') }),
  );
});

test('owner key: an address that others can reach is served with it', async () => {
  const server = await start({ grpc: '0.0.0.0:0', http: '0.0.0.0:0' });
  expect((await new RestClient(server.http).refusal('POST', '/v1/c/records:find')).status).toBe(
    401,
  );
});

test('owner key: a file that holds no key is refused without showing what it holds', async () => {
  const data = mkdtempSync(join(tmpdir(), 'mr-db-'));
  closing.push(() => rmSync(data, { recursive: true }));
  writeFileSync(join(data, 'db.key'), 'hush hush\n');
  const started = startServer({ auth: 'keys' }, data);
  await expect(started).rejects.toThrow(UsageError);
  await expect(started).rejects.toThrow(/db\.key must hold one API key/);
  await expect(started).rejects.not.toThrow(/hush/);
});

test('owner key: a copy in the data directory of a follower is its key for the leader', async () => {
  const leader = await start();
  const data = mkdtempSync(join(tmpdir(), 'mr-db-'));
  writeFileSync(join(data, 'db.key'), `${keyOf(leader)}\n`, { mode: 0o600 });
  const follower = await start({ follow: `grpc://${leader.grpc}` }, data);
  const client = await connect(follower.socket);
  closing.push(() => client.close());
  await expect.poll(async () => (await client.status()).state).toBe('streaming');
});

test('modes: files of the database and its directory are private', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'mr-db-'));
  closing.push(() => rmSync(parent, { recursive: true, force: true }));
  const data = join(parent, 'data');
  mkdirSync(data);
  chmodSync(data, 0o755);
  const server = await start({}, data);
  expect(modeOf(data)).toBe('700');
  expect(server.log.lines).toContainEqual(
    expect.objectContaining({ message: expect.stringContaining('its mode is now 700') }),
  );
  for (const name of ['CURRENT', 'LOCK', 'NODE', 'store-000001.mdb', 'store-000001.mdb-lock']) {
    expect([name, modeOf(join(data, name))]).toEqual([name, '600']);
  }
});

test('modes: a directory with other content is warned about and left alone', async () => {
  const data = mkdtempSync(join(tmpdir(), 'mr-db-'));
  writeFileSync(join(data, 'notes.txt'), '');
  chmodSync(data, 0o755);
  const server = await start({}, data);
  expect(modeOf(data)).toBe('755');
  expect(server.log.lines).toContainEqual(
    expect.objectContaining({ message: expect.stringContaining('chmod 700') }),
  );
});

test('modes: a keys file that others can read is warned about at start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mr-db-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'keys.yaml');
  writeFileSync(file, 'keys: []\n');
  chmodSync(file, 0o644);
  const server = await start({ 'keys-file': file });
  expect(server.log.lines).toContainEqual(
    expect.objectContaining({
      message: `${file} can be read by other users (mode 644). Run: chmod 600 ${file}`,
    }),
  );
});
