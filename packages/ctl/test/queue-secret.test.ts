import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { socketUrls } from '../src/db/connection.js';
import { QueueServer } from './queue-server.js';

const server = new QueueServer();
beforeAll(() => server.start());
afterAll(() => server.remove());

test('secret: add generates a signing secret or reads one, list hides values', async () => {
  const file = join(server.folder, 'secrets.yaml');
  const at = ['--secrets-file', file];
  const made = await server.json(['secret', 'add', 'mail-signing', '--queues', 'mail*', ...at]);
  expect(made.value).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const added = await server.ok(['secret', 'add', 'token', ...at], { input: 'abc123\n' });
  expect(added).toBe(`Added the secret "token" for * to ${file}.\n`);
  expect(readFileSync(file, 'utf8')).toContain(
    '  - name: token\n    value: abc123\n    queues:\n      - "*"\n',
  );
  const listed = await server.ok(['secret', 'list', ...at]);
  expect(listed).toMatch(/^NAME +QUEUES\nmail-signing +mail\*\ntoken +\*\n$/);
  const twice = await server.ctl(['secret', 'add', 'token', ...at]);
  expect([twice.code, twice.err]).toEqual([1, expect.stringContaining('already has a secret')]);
  await server.ok(['secret', 'remove', 'token', ...at]);
  expect((await server.json(['secret', 'list', ...at])).secrets).toEqual([
    { name: 'mail-signing', queues: ['mail*'] },
  ]);
  expect((await server.ctl(['secret', 'remove', 'token', ...at])).code).toBe(1);
});

test('secret: a mistake in the file is one line with its place, and nothing is written', async () => {
  const text = 'secrets:\n  - name: a\n    value: hidden\n    queue: [mail]\n';
  const file = server.write('bad.yaml', text);
  const { code, err } = await server.ctl(['secret', 'add', 'b', '--secrets-file', file]);
  expect([code, err.split('\n')[0]]).toEqual([2, expect.stringMatching(/bad\.yaml:4: /)]);
  expect(err).not.toContain('hidden');
  expect(readFileSync(file, 'utf8')).toBe(text);
  expect(existsSync(`${file}.edit`)).toBe(false);
});

test('secret: finds the file by --config, and asks for it otherwise', async () => {
  const config = server.write('own.yaml', { tokens_file: 't.yaml', secrets_file: 's.yaml' });
  await server.ok(['secret', 'add', 'a', '--config', config]);
  expect(existsSync(join(server.folder, 's.yaml'))).toBe(true);
  expect((await server.ctl(['secret', 'list'])).code).toBe(2);
});

test('credentials: --data and MILLRACE_DATA find the files of `ctl up`', async () => {
  const data = join(server.folder, 'up');
  mkdirSync(data);
  writeFileSync(join(data, 'queue-tokens.yaml'), 'tokens: []\n');
  writeFileSync(join(data, 'queue-secrets.yaml'), 'secrets: []\n');
  const at = ['--data', data];
  await server.ok(['token', 'new', '--id', 'shop', '--grant', 'mail:submitter', ...at]);
  await server.ok(['secret', 'add', 'signing', ...at]);
  const env = { MILLRACE_DATA: data };
  const { tokens } = await server.json(['token', 'list'], { env });
  const { secrets } = await server.json(['secret', 'list'], { env });
  expect([tokens, secrets]).toMatchObject([[{ id: 'shop' }], [{ name: 'signing' }]]);
  await server.ok(['token', 'revoke', 'shop', ...at]);
  expect((await server.json(['token', 'list', ...at])).tokens).toEqual([]);
});

test('db: --data finds the database of `ctl up` beside one of `ctl db serve`', () => {
  const data = join(server.folder, 'both');
  expect(socketUrls(data, {})).toEqual([`unix:${data}/db.sock`]);
  mkdirSync(join(data, 'db'), { recursive: true });
  expect(socketUrls(data, {})).toEqual([`unix:${data}/db.sock`, `unix:${data}/db/db.sock`]);
});
