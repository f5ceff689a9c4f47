import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from '@millrace/db';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { DbServer } from './db-server.js';
import { ctlHere as ctl, startCtl } from './run-ctl.js';

const again = inCampaign('process');

let server: DbServer;
beforeEach(() => {
  server = new DbServer();
});
afterEach(() => server.remove());

describe('serve', () => {
  test('says where it listens, drains on SIGTERM and ends with 0', async () => {
    const { child, ended } = await server.start();
    expect(server.url('grpc')).toMatch(/^grpc:\/\/127\.0\.0\.1:\d+$/);
    expect(server.url('http')).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(server.url('socket')).toBe(`unix://${server.data}/db.sock`);
    const ready = await fetch(`${server.url('http')}/readyz`);
    expect(ready.status).toBe(200);
    child.kill('SIGTERM');
    const { code, signal, err } = await ended;
    expect({ code, signal, err }).toEqual({ code: 0, signal: null, err: '' });
  });

  again('Ctrl-C is as good', async () => {
    const { child, ended } = await server.start();
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 0, signal: null });
  });

  again('a mistake in the settings is one line and exit code 2', async () => {
    const wrong = await ctl(['db', 'serve', '--data', server.data, '--grpc', 'nowhere']);
    expect([wrong.code, wrong.out]).toEqual([2, '']);
    expect(wrong.err).toMatch(/^ctl: .*--grpc must be an address such as.*\n$/);
    const exposed = ['--no-auth', '--grpc', '0.0.0.0:0'];
    const open = await ctl(['db', 'serve', '--data', server.data, ...exposed]);
    expect([open.code, open.out]).toEqual([2, '']);
    expect(open.err).toContain('auth is none');
    await server.start();
    const second = await ctl([
      'db',
      'serve',
      '--data',
      server.data,
      '--grpc',
      '127.0.0.1:0',
      '--http',
      '127.0.0.1:0',
    ]);
    expect([second.code, second.out]).toEqual([2, '']);
    expect(second.err).toMatch(/^ctl: .*in use by process \d+.*\n$/);
  });

  test('serve: creates a key that gRPC and REST need and ctl finds', async () => {
    await server.start();
    const key = readFileSync(join(server.data, 'db.key'), 'utf8').trim();
    const url = `${server.url('http')}/v1/people/records:find`;
    expect((await fetch(url, { method: 'POST' })).status).toBe(401);
    const shown = await fetch(url, { method: 'POST', headers: { 'x-api-key': key } });
    expect(shown.status).toBe(200);
    const grpc = ['status', '--url', server.url('grpc')];
    expect((await server.ctl(grpc)).code).toBe(0);
    expect((await server.ctl([...grpc, '--data', server.data])).code).toBe(0);
    const elsewhere = await server.ctl([...grpc, '--data', '/nonexistent']);
    expect(elsewhere).toMatchObject({ code: 1, err: expect.stringContaining('API key') });
    const other = { env: { MILLRACE_DB_KEY: 'some.other' } };
    expect((await server.ctl(grpc, other)).code).toBe(1);
    expect((await server.ctl([...grpc, '--key', key], other)).code).toBe(0);
  });

  again('serve: --no-auth asks for no key, and status says so', async () => {
    await server.start('--no-auth');
    expect(existsSync(join(server.data, 'db.key'))).toBe(false);
    const url = `${server.url('http')}/v1/people/records:find`;
    expect((await fetch(url, { method: 'POST' })).status).toBe(200);
    expect((await server.ctl(['status'])).out).toMatch(/^auth +off/m);
  });

  test('settings come from a file, and a flag wins', async () => {
    const file = join(server.folder, 'db.yaml');
    writeFileSync(
      file,
      'grpc: 127.0.0.1:0\ncollections:\n  people: {indexes: [{fields: [age]}, {fields: [email], unique: true}], default_ttl_ms: 3600000}\n',
    );
    await server.start('--config', file);
    const collections = async () => (await server.json(['status'])).collections;
    await expect.poll(collections).toEqual([
      {
        name: 'people',
        records: 0,
        default_ttl: '3600s',
        indexes: [
          { name: 'age', fields: ['age'], unique: false, sparse: false, state: 'ready' },
          { name: 'email', fields: ['email'], unique: true, sparse: false, state: 'ready' },
        ],
      },
    ]);
    const { out } = await server.ctl(['status']);
    expect(out).toMatch(/people +0 +1h +\(age\); \(email\) unique\n/);
  });
});

again('a watch goes on after a restart of the server, without gap or duplicate', async () => {
  await server.start();
  const socket = server.url('socket');
  const { child, ended, says } = startCtl(['db', 'watch', 'feed', '--url', socket, '--max', '40']);
  let out = '';
  child.stdout.on('data', (text: string) => (out += text));
  // Nothing shows that a quiet watch has begun, so writes come until one is seen.
  let writes = 0;
  while (!out.includes('feed/first')) {
    await server.json(['put', 'feed', 'first', `{"n":${++writes}}`]);
  }
  await expect.poll(() => out).toMatch(new RegExp(`feed/first +rev ${writes}\\b`));
  const seen = out.split('\n').length - 1;
  await server.stop();
  await server.start();
  await says('Resuming when it is back');
  for (let n = seen; n < 40; n++) await server.json(['put', 'feed', `k${n}`, '{}']);
  const { code, out: all } = await ended;
  expect(code).toBe(0);
  const reported = all
    .trim()
    .split('\n')
    .map((line) => /feed\/(\S+) +rev (\d+)/.exec(line)!.slice(1, 3).join(' '));
  expect(new Set(reported).size).toBe(reported.length);
  expect(reported.slice(seen)).toEqual(
    Array.from({ length: 40 - seen }, (_, i) => `k${seen + i} 1`),
  );
});

describe('backup, restore, verify', () => {
  test('a full backup and an increment make the database again', async () => {
    await server.start();
    const lines = Array.from({ length: 500 }, (_, n) =>
      JSON.stringify({ key: `k${n}`, data: { n } }),
    );
    await server.json(['import', 'people'], lines.join('\n'));
    const [full, increment] = [join(server.folder, 'full'), join(server.folder, 'increment')];
    const made = await server.ctl(['backup', '--out', full]);
    expect(made).toMatchObject({ code: 0, err: '' });
    expect(made.out).toMatch(/^Backed up 500 records \(.*\) at commit \d+ to .*full in /);
    expect(statSync(full).mode & 0o777).toBe(0o600);
    await server.json(['put', 'people', 'k0', '{"n":-1}']);
    await server.json(['delete', 'people', 'k1']);
    const more = await server.json(['backup', '--out', increment, '--since', full]);
    expect(more).toMatchObject({ records: 2, format: 'snapshot', sha256: expect.any(String) });
    const some = join(server.folder, 'some');
    await server.json(['backup', '--out', some, '--collections', 'people']);
    for (const [words, code, text] of [
      [['--since', full, '--out', full], 2, 'another file'],
      [['--since', some, '--out', join(server.folder, 'none')], 1, 'other collections'],
      [['--collections', 'peple', '--out', join(server.folder, 'none')], 1, 'people'],
    ] as const) {
      const refused = await server.ctl(['backup', ...words]);
      expect(refused).toMatchObject({ code, err: expect.stringContaining(text) });
    }
    expect(existsSync(join(server.folder, 'none'))).toBe(false);
    const plain = await server.ctl(['backup', '--out', 'dump.ndjson', '--format', 'ndjson']);
    expect(plain.code).toBe(0);
    const dump = readFileSync(join(server.folder, 'dump.ndjson'), 'utf8').trim().split('\n');
    expect(dump).toHaveLength(499);

    const restored = join(server.folder, 'restored');
    const out = await ctl([
      'db',
      'restore',
      '--from',
      full,
      '--from',
      increment,
      '--data',
      restored,
    ]);
    expect(out).toMatchObject({ code: 0, err: '' });
    expect(out.out).toMatch(/^Restored 499 records at commit \d+ to .* and verified them\.\n/);
    const verified = await ctl(['db', 'verify', '--data', restored, '--json']);
    expect(JSON.parse(verified.out)).toMatchObject({ ok: true, records: 499, problems: [] });
    await server.stop();
    const other = new DbServer();
    try {
      await other.start('--data', restored);
      const at = ['--url', other.url('grpc'), '--data', restored];
      const found = await ctl(['db', 'get', 'people', 'k0', '--json', ...at]);
      expect(JSON.parse(found.out).record.data).toEqual({ n: -1 });
    } finally {
      await other.remove();
    }
  });

  test('restore: a log archive leads to a commit or a time, also after kill -9', async () => {
    const archive = join(server.folder, 'archive');
    const flags = ['--log-archive', archive, '--log-archive-interval', '100ms'];
    const { child, ended } = await server.start(...flags);
    const put = async (n: number) => {
      const { record } = await server.json(['put', 'people', 'ada', `{"n":${n}}`]);
      return { n, seq: Number(record.seq), time: String(record.updated_at) };
    };
    const first = await put(1);
    expect(readdirSync(archive)).toContain('base-000000000000.backup');
    const second = await put(2);
    const isArchived = (seq: number) =>
      readdirSync(archive).some((name) => name.endsWith(`-00000000000${seq}.backup`));
    await expect.poll(() => isArchived(2)).toBe(true);
    const base = await server.json(['backup', '--base', '--out', archive]);
    expect(base.file).toBe(join(archive, 'base-000000000002.backup'));
    await put(3);
    child.kill('SIGKILL');
    await ended;
    await server.start(...flags);
    await expect.poll(() => isArchived(3)).toBe(true);
    await server.stop();

    let count = 0;
    const restored = async (...args: string[]) => {
      const data = join(server.folder, `restored-${++count}`);
      const out = await ctl(['db', 'restore', '--from', archive, '--data', data, ...args]);
      return { data, ...out };
    };
    const valueIn = async (data: string) => {
      const db = await open(data);
      const found = await db.collection<{ n: number }>('people').findByKey('ada');
      await db.close();
      return found?.data.n;
    };
    for (const [n, ...args] of [
      [1, '--to', String(first.seq)],
      [2, '--to', String(second.seq)],
      [2, '--to', second.time],
      [3],
    ] as const) {
      const { data, code, err } = await restored(...args);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(await valueIn(data)).toBe(n);
    }
    expect(await restored('--to', 'yesterday')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--to must be a commit number or a time'),
    });
    expect((await restored('--to', '99')).err).toContain('does not reach commit 99');
    const other = join(server.folder, 'other', 'archive');
    await server.start();
    expect(await server.json(['backup', '--base', '--out', other])).toMatchObject({ seq: 3 });
    expect((await ctl(['db', 'restore', '--from', other, '--data', `${other}-3`])).code).toBe(0);
    const wrong = await server.ctl(['backup', '--base', '--since-seq', '1', '--out', archive]);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('full backup') });
  });

  test('what is damaged, out of order or in the way is refused before anything is written', async () => {
    await server.start();
    await server.json(['put', 'people', 'a', '{"n":1}']);
    const full = join(server.folder, 'full');
    await server.json(['backup', '--out', full]);
    const whole = await ctl(['db', 'verify', '--backup', full]);
    expect([whole.code, whole.out]).toEqual([0, expect.stringMatching(/is intact: a full backup/)]);
    const bytes = readFileSync(full);
    bytes[bytes.length >> 1]! ^= 1;
    const damaged = join(server.folder, 'damaged');
    writeFileSync(damaged, bytes);
    const target = join(server.folder, 'target');
    for (const args of [
      ['restore', '--from', damaged, '--data', target],
      ['verify', '--backup', damaged],
    ]) {
      const refused = await ctl(['db', ...args]);
      expect([refused.code, refused.err]).toEqual([
        1,
        expect.stringMatching(/^ctl: .*(damaged|incomplete).*\n$/),
      ]);
    }
    expect(existsSync(target)).toBe(false);
    const busy = await ctl(['db', 'restore', '--from', full, '--data', server.data]);
    expect(busy.err).toContain('is not empty');
    const used = await ctl(['db', 'verify', '--data', server.data]);
    expect([used.code !== 0, used.err]).toEqual([
      true,
      expect.stringContaining('in use by process'),
    ]);
    const none = await ctl([
      'db',
      'backup',
      '--out',
      '/nonexistent/x',
      '--url',
      server.url('socket'),
    ]);
    expect([none.code, none.err]).toEqual([1, expect.stringContaining('Create it first')]);
  });

  again('compact shows what it brought', async () => {
    await server.start();
    for (let n = 0; n < 3; n++) await server.json(['put', 'people', 'a', `{"n":${n}}`]);
    expect(await server.json(['compact', '--dry-run'])).toMatchObject({ oldest_seq: 1 });
    const { code, out } = await server.ctl(['compact', '--trim-before', '3']);
    expect(code).toBe(0);
    expect(out).toMatch(/^Compacted .* to .* in .*; the log starts at commit 3\.\n$/);
  });
});

test('over TLS, with the authority that is reported to be trusted; promoting a leader changes nothing', async () => {
  const pem = (name: string) =>
    fileURLToPath(new URL(`../../kit/test/outbound/self-signed.${name}.pem`, import.meta.url));
  await server.start('--tls-cert', pem('cert'), '--tls-key', pem('key'));
  const at = ['--url', server.url('grpc'), '--data', server.data, '--json'];
  const promoted = await ctl(['db', 'promote', ...at, '--tls-ca', pem('cert')]);
  expect(JSON.parse(promoted.out)).toEqual({ role: 'leader', epoch: 1, seq: 0, lag: 0 });
  const doubted = await ctl(['db', 'status', ...at, '--timeout', '1s']);
  expect([doubted.code, doubted.out]).toEqual([1, '']);
  expect(JSON.parse(doubted.err).error.message).toContain('--tls-ca FILE');
});

test('keys: made once, good for what they say, gone when revoked', async () => {
  const file = join(server.folder, 'keys.yaml');
  const create = (...args: string[]) =>
    server.json(['keys', 'create', '--keys-file', file, ...args]) as Promise<{
      id: string;
      key: string;
    }>;
  const admin = await create('--scope', '*:admin');
  const reader = await create('--id', 'reader', '--scope', 'people:read', '--expires', '1h');
  expect(readFileSync(file, 'utf8')).not.toContain(reader.key.split('.')[1]);
  const running = await server.start('--keys-file', file);
  const url = server.url('grpc');
  const as = (key: string, ...args: string[]) =>
    ctl(['db', ...args, '--url', url], { MILLRACE_DB_KEY: key });
  expect((await as('', 'find', 'people')).err).toContain('needs an API key');
  const other = join(server.folder, 'other');
  mkdirSync(other);
  writeFileSync(join(other, 'db.key'), 'owner.secret-of-another-database\n');
  const foreign = await as('', 'find', 'people', '--data', other);
  expect(foreign.err).toContain(`The key in ${other}/db.key is not one of this database.`);
  expect((await as(admin.key, 'put', 'people', 'ada', '{}')).code).toBe(0);
  expect((await as(reader.key, 'find', 'people')).code).toBe(0);
  const denied = await as(reader.key, 'put', 'people', 'ada', '{}', '--json');
  expect(JSON.parse(denied.err).error.code).toBe('SCOPE');
  const flag = await ctl(['db', 'find', 'people', '--url', url, '--key', admin.key]);
  expect(flag.code).toBe(0);

  const list = await server.ctl(['keys', 'list', '--keys-file', file]);
  expect(list.out).toMatch(
    /^ID +MAY +EXPIRES\n\S+ +admin \* +never\nreader +read people +\d{4}-.*Z\n$/,
  );
  const twice = await server.ctl([
    'keys',
    'create',
    '--keys-file',
    file,
    '--id',
    'reader',
    '--scope',
    '*:read',
  ]);
  expect([twice.code, twice.err]).toEqual([
    1,
    expect.stringContaining('already has a key "reader"'),
  ]);
  const revoked = await server.ctl(['keys', 'revoke', 'reader', '--keys-file', file]);
  expect(revoked.out).toBe(`Removed the key "reader" from ${file}.\n`);
  running.child.kill('SIGHUP');
  await expect
    .poll(async () => (await as(reader.key, 'find', 'people')).err)
    .toContain('API key is unknown or was revoked');
  const gone = await server.ctl(['keys', 'revoke', 'reader', '--keys-file', file]);
  expect([gone.code, gone.err]).toEqual([1, expect.stringContaining('has no key "reader"')]);
  expect(
    JSON.parse((await server.ctl(['keys', 'list', '--keys-file', file, '--json'])).out),
  ).toEqual({
    keys: [{ id: admin.id, scopes: [{ collections: '*', access: 'admin' }], expires_at: null }],
  });
});
