import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { locate } from './locate.js';

let home = '';
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'locate-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

const data = '.local/share/millrace';
const running = 'http://127.0.0.1:4711';

test('without anything to go by it is the usual address, without a token', async () => {
  expect(await locate({}, { HOME: home })).toEqual({
    url: 'http://127.0.0.1:8765',
    token: undefined,
  });
});

test('--url comes before MILLRACE_URL, and that before the address file', async () => {
  write(`${data}/daemon.url`, `${running}\n`);
  const env = { HOME: home, MILLRACE_URL: 'http://localhost:2/' };
  expect((await locate({ url: 'http://127.0.0.1:1' }, env)).url).toBe('http://127.0.0.1:1');
  expect((await locate({}, env)).url).toBe('http://localhost:2');
  expect((await locate({}, { HOME: home })).url).toBe(running);
});

test('a data directory that is named is looked into, whatever the variables say', async () => {
  write('here/daemon.url', running);
  write('here/daemon.token', 'mr_here\n');
  const env = { HOME: home, MILLRACE_URL: 'http://127.0.0.1:2' };
  const found = await locate({ data: join(home, 'here') }, env);
  expect(found).toEqual({ url: running, token: 'mr_here' });
  const byVariable = await locate({}, { HOME: home, MILLRACE_DATA_DIR: join(home, 'here') });
  expect(byVariable).toEqual(found);
});

test('on a named directory without a daemon there is none, and no other is asked', async () => {
  write(`${data}/daemon.url`, running);
  const env = { HOME: home, MILLRACE_URL: running };
  const requests = locate({ data: join(home, 'empty') }, env);
  await expect(requests).rejects.toThrow(Refusal);
  await expect(requests).rejects.toThrow(
    `no daemon is running on the data in ${join(home, 'empty')}. `,
  );
  const received = await locate({ data: join(home, 'empty'), url: 'http://127.0.0.1:1' }, env);
  expect(received.url).toBe('http://127.0.0.1:1');
});

test('MILLRACE_TOKEN comes before the token file', async () => {
  write(`${data}/daemon.token`, 'mr_file');
  expect((await locate({}, { HOME: home })).token).toBe('mr_file');
  expect((await locate({}, { HOME: home, MILLRACE_TOKEN: 'mr_env' })).token).toBe('mr_env');
});

test('where there is only a token that may read, that one is used', async () => {
  write(`${data}/token-read-only`, 'mr_reader');
  expect((await locate({}, { HOME: home })).token).toBe('mr_reader');
});

test('a token file of this machine is not sent to another one', async () => {
  write(`${data}/daemon.token`, 'mr_file');
  write('.config/millrace/config.yaml', 'token: mr_config_0123456789\n');
  for (const url of ['http://10.0.0.5:8765', 'https://example.com', 'http://127.0.0.1.evil.test']) {
    expect((await locate({ url }, { HOME: home })).token).toBeUndefined();
    expect((await locate({ url }, { HOME: home, MILLRACE_TOKEN: 'mr_env' })).token).toBe('mr_env');
  }
  for (const url of ['http://localhost:1', 'http://[::1]:1', 'http://127.0.0.2:1']) {
    expect((await locate({ url }, { HOME: home })).token).toBe('mr_file');
  }
});

test('the config file knows where else to look', async () => {
  write('.config/millrace/config.yaml', 'data_dir: ~/else\nlisten: 127.0.0.1:9999\n');
  expect((await locate({}, { HOME: home })).url).toBe('http://127.0.0.1:9999');
  write('else/daemon.url', running);
  write('else/daemon.token', 'mr_else');
  expect(await locate({}, { HOME: home })).toEqual({ url: running, token: 'mr_else' });
});

test('an address that stands for every interface is reached over loopback', async () => {
  write('.config/millrace/config.yaml', 'listen: 0.0.0.0:9999\ntoken: mr_config_0123456789\n');
  expect(await locate({}, { HOME: home })).toEqual({
    url: 'http://127.0.0.1:9999',
    token: 'mr_config_0123456789',
  });
});

test.for(['daemon', 'ftp://x', 'http://user:secret@x', ''])('"%s" is no address', async (url) => {
  if (url === '') {
    await expect(locate({}, { HOME: home, MILLRACE_URL: url })).resolves.toBeDefined();
    return;
  }
  await expect(locate({ url }, { HOME: home })).rejects.toThrow(UsageError);
  await expect(locate({}, { HOME: home, MILLRACE_URL: url })).rejects.toThrow(
    /\$MILLRACE_URL must/,
  );
});
