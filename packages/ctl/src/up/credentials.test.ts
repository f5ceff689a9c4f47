import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSecret, parseTokens } from '@millrace/kit/tokens';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ensureCredentials } from './credentials.js';
import { loadSettings } from './settings.js';

let data = '';
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'ctl-up-files-'));
});
afterEach(() => rmSync(data, { recursive: true, force: true }));

const env = () => ({ HOME: data });
const introduceAll = (more: Record<string, string> = {}) =>
  ensureCredentials(data, loadSettings(data, {}, { ...env(), ...more }), { ...env(), ...more });
const read = (name: string) => readFileSync(join(data, name), 'utf8');
const roles = ['submitter', 'operator', 'admin'] as const;

test('the first run makes everything, for its owner alone, and the next one changes nothing', async () => {
  const first = await introduceAll();
  const files = readdirSync(data).toSorted();
  expect(files).toEqual([
    'daemon.token',
    'queue-daemon.token',
    'queue-secrets.yaml',
    'queue-tokens.yaml',
    'queue.token',
  ]);
  const texts = files.map(read);
  expect(files.map((name) => statSync(join(data, name)).mode & 0o777)).toEqual([
    0o600, 0o600, 0o600, 0o600, 0o600,
  ]);
  expect(await introduceAll()).toEqual(first);
  expect(readdirSync(data).toSorted()).toEqual(files);
  expect(files.map(read)).toEqual(texts);
});

test('the queue knows both tokens, and the secret is one that it can sign with', async () => {
  const { ownerToken, daemonToken, signingSecret, isLetIn, notices } = await introduceAll();
  expect(read('queue.token')).toBe(`${ownerToken}\n`);
  expect(daemonToken).not.toBe(ownerToken);
  const tokens = parseTokens(read('queue-tokens.yaml'), 'x', roles);
  expect(tokens.size).toBe(2);
  const { secrets } = parse(read('queue-secrets.yaml')) as { secrets: unknown[] };
  const queues = ['agents'];
  expect(secrets).toEqual([
    { name: 'agents-callback', value: signingSecret, queues },
    { name: 'daemon-token', value: read('daemon.token').trim(), queues },
  ]);
  expect(signingSecret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect({ isLetIn, notices }).toEqual({ isLetIn: true, notices: [] });
});

test('what an earlier version or a crash left is completed', async () => {
  writeFileSync(join(data, 'queue.token'), 'mr_owner_secret\n');
  const { ownerToken } = await introduceAll();
  expect(ownerToken).toBe('mr_owner_secret');
  expect(read('queue-tokens.yaml')).toContain(hashSecret('mr_owner_secret'));
  rmSync(join(data, 'queue-daemon.token'));
  const again = await introduceAll();
  const tokens = parse(read('queue-tokens.yaml')) as { tokens: { principal: string }[] };
  expect(tokens.tokens.map(({ principal }) => principal)).toEqual(['owner', 'daemon', 'daemon']);
  expect(read('queue-tokens.yaml')).toContain(hashSecret(again.daemonToken!));
});

test('the token that the daemon asks for is among the secrets, and follows its changes', async () => {
  const secretOf = () =>
    (parse(read('queue-secrets.yaml')) as { secrets: { name: string; value: string }[] }).secrets;
  writeFileSync(join(data, 'daemon.token'), 'mr_daemon\n');
  await introduceAll();
  expect(secretOf()[1]).toMatchObject({ name: 'daemon-token', value: 'mr_daemon' });
  await introduceAll({ MILLRACE_TOKEN: 'mr_other_0123456789' });
  expect(secretOf()[1]).toMatchObject({ value: 'mr_other_0123456789' });
  await introduceAll({ MILLRACE_AUTH: 'none' });
  expect(secretOf()).toHaveLength(1);
});

test('secrets: the file is YAML to which an entry can be appended', async () => {
  const old = JSON.stringify(
    { secrets: [{ name: 'mine', value: 'x', queues: ['mail'] }] },
    null,
    2,
  );
  writeFileSync(join(data, 'queue-secrets.yaml'), `# By an earlier version.\n${old}\n`);
  await introduceAll();
  expect(read('queue-secrets.yaml')).toMatch(/^# By an earlier version\.\n+secrets:\n  - name: /);
  const entry = '  - name: added\n    value: y\n    queues: [mail]\n';
  writeFileSync(join(data, 'queue-secrets.yaml'), `${read('queue-secrets.yaml')}${entry}`);
  const before = read('queue-secrets.yaml');
  await introduceAll();
  expect(read('queue-secrets.yaml')).toBe(before);
  const names = (parse(before) as { secrets: { name: string }[] }).secrets.map(({ name }) => name);
  expect(names).toEqual(['agents-callback', 'daemon-token', 'mine', 'added']);
});

test('secrets: a mistake in the file is one line with its place', async () => {
  writeFileSync(join(data, 'queue-secrets.yaml'), 'secrets:\n  - name: a\n    vlaue: hidden\n');
  const failed = introduceAll();
  await expect(failed).rejects.toThrow(/queue-secrets\.yaml:3: .*vlaue/);
  await expect(failed).rejects.not.toThrow(/hidden/);
});

test('secrets of the owner stay where they are', async () => {
  const own = { name: 'mine', value: 'x', queues: ['mail'] };
  writeFileSync(join(data, 'queue-secrets.yaml'), JSON.stringify({ secrets: [own] }));
  await introduceAll();
  expect((parse(read('queue-secrets.yaml')) as { secrets: unknown[] }).secrets[2]).toEqual(own);
});

test('files that the settings of the queue name are read and never written', async () => {
  writeFileSync(
    join(data, 'queue.yaml'),
    'tokens_file: mine.yaml\nsecrets_file: my-secrets.yaml\n',
  );
  writeFileSync(join(data, 'my-secrets.yaml'), 'secrets: []\n');
  const lacking = await introduceAll();
  expect(lacking).toMatchObject({ ownerToken: undefined, signingSecret: undefined });
  expect(lacking.notices.join('\n')).toMatch(/queue\.token[^]*agents-callback/);
  expect(lacking.notices.join('\n')).toContain('daemon-token');
  expect(readdirSync(data).toSorted()).toEqual(['daemon.token', 'my-secrets.yaml', 'queue.yaml']);
  const queues = ['*'];
  const secrets = [
    { name: 'agents-callback', value: 'whsec_AAAA', queues },
    { name: 'daemon-token', value: read('daemon.token').trim(), queues },
  ];
  writeFileSync(join(data, 'my-secrets.yaml'), JSON.stringify({ secrets }));
  expect(await introduceAll({ MILLRACE_QUEUE_TOKEN: 'mr_mine' })).toMatchObject({
    ownerToken: 'mr_mine',
    daemonToken: 'mr_mine',
    signingSecret: 'whsec_AAAA',
    notices: [],
  });
});

test('a database that asks for keys is reported of, and a damaged secrets file without its text', async () => {
  writeFileSync(join(data, 'db.yaml'), 'keys_file: keys.yaml\n');
  expect((await introduceAll()).notices.join('')).toMatch(/db\.key/);
  writeFileSync(join(data, 'queue-secrets.yaml'), 'secrets: [whsec_very_secret');
  const failure = await introduceAll().catch((error: unknown) => error as Error);
  expect((failure as Error).message).toMatch(/queue-secrets\.yaml:1:28: not valid YAML/);
  expect((failure as Error).message).not.toContain('very_secret');
});
