import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ctl, describedCommands, wordsOf } from './in-process.test-support.js';
import type { CommandShape } from './base/shape.js';

/* The exit code of every command: 2 for a usage error, 1 for a failure. */

const folder = mkdtempSync(join(tmpdir(), 'ctl-codes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
};

const leaves = (await describedCommands()).filter(({ commands }) => commands.length === 0);

const taskId = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';
const samples: Readonly<Record<string, () => string[]>> = {
  data: () => ['{"n":1}'],
  file: () => [file('some.json', '{"name":"x","type":"object","steps":[]}')],
  command: () => ['--', 'true'],
  id: () => [taskId],
  ids: () => [taskId],
};

/** Arguments with which the command gets as far as its server. */
const special: Readonly<Record<string, () => string[]>> = {
  'ctl db backup': () => ['--out', join(folder, 'x.backup')],
  'ctl db watch': () => ['people'],
  'ctl db update': () => ['people', taskId, '{"$inc":{"n":1}}'],
  'ctl queue update': () => [taskId, '--priority', '1'],
  'ctl queue backup': () => ['--out', join(folder, 'queue.backup')],
  'ctl db tx': () => [file('ops.json', '[{"op":"get","collection":"a","key":"k"}]')],
  'ctl db migrate': () => ['people', '--module', file('m.mjs', 'export const migrations = [];')],
  'ctl db import': () => ['people', file('lines.ndjson', '{}\n')],
  'ctl queue submit': () => ['mail', 'send', '--payload', '{}'],
  'ctl queue config set': () => ['mail', file('queue.yaml', 'delivery: pull\n')],
  'ctl queue schedule set': () => ['mail', 'daily', '--every', '1d', '--handler', 'send'],
  'ctl agent spawn': () => ['hello'],
  'ctl agent submit': () => ['hello'],
  'ctl agent send': () => ['docs', 'hello'],
  'ctl pipeline run': () => [file('p.yaml', 'name: p\nsteps:\n  - name: a\n    prompt: hello\n')],
  'ctl inbox read': () => ['--all'],
  'ctl daemon backup': () => [join(folder, 'daemon-backups')],
};

function argumentsOf(command: CommandShape): string[] {
  const own = special[command.path]?.();
  if (own) return own;
  return command.arguments
    .filter(({ required, name }) => required || name === 'ids' || name === 'data')
    .flatMap(({ name, choices }) => samples[name]?.() ?? [choices[0] ?? 'people']);
}

const urlOf = ({ path }: CommandShape) =>
  path.startsWith('ctl db ') ? 'grpc://127.0.0.1:1' : 'http://127.0.0.1:1';
const others = new Set([
  // Its --url is a callback.
  'ctl queue create',
  // Serves until its input ends.
  'ctl mcp',
  // Writes its file without a server.
  'ctl config set',
  // Need a terminal.
  'ctl config edit',
  'ctl tui',
]);
const called = leaves.filter(
  ({ options, path }) => options.some(({ long }) => long === '--url') && !others.has(path),
);

test.each(called.map((command) => [command.path, command] as const))(
  '%s: no server is exit code 1',
  async (path, command) => {
    const args = [...wordsOf(command), '--url', urlOf(command), ...argumentsOf(command)];
    const { code, out, err } = await ctl(args);
    expect(code, err).toBe(1);
    // The status of a daemon that is down is an answer.
    expect(path === 'ctl daemon status' ? out : err).toMatch(/answers at|127\.0\.0\.1:1/);
  },
);

const takesArguments = leaves.filter((command) => command.arguments.some((each) => each.required));

test.each(takesArguments.map((command) => [command.path, command] as const))(
  '%s: a missing argument is exit code 2',
  async (_path, command) => {
    const { code, out, err } = await ctl(wordsOf(command));
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(/missing required argument|required option/);
  },
);

describe('exit code 1: a file or directory that is not there', () => {
  const none = '/nonexistent/x';
  test.each([
    ['db', 'put', 'people', 'k', `@${none}`, '--url', 'grpc://127.0.0.1:1'],
    ['db', 'insert', 'people', `@${none}`, '--url', 'grpc://127.0.0.1:1'],
    ['db', 'tx', none, '--url', 'grpc://127.0.0.1:1'],
    ['db', 'import', 'people', none, '--url', 'grpc://127.0.0.1:1'],
    ['db', 'migrate', 'people', '--module', none],
    ['db', 'schema', 'set', 'people', none],
    ['db', 'backup', '--out', none],
    ['db', 'backup', '--out', none, '--base'],
    ['db', 'backup', '--out', join(folder, 'y'), '--since', none],
    ['db', 'restore', '--from', none, '--data', join(folder, 'r')],
    ['db', 'verify', '--data', none],
    ['db', 'verify', '--backup', none],
    ['db', 'status', '--data', none],
    ['db', 'keys', 'list', '--keys-file', none],
    ['db', 'keys', 'revoke', 'id', '--keys-file', none],
    ['db', 'find', 'people', '--url', 'grpcs://127.0.0.1:1', '--tls-ca', none],
    ['queue', 'list', '--token-file', none],
    ['queue', 'submit', 'mail', 'send', '--file', none],
    ['queue', 'submit', 'mail', '--batch', none],
    ['queue', 'config', 'set', 'mail', none],
    ['queue', 'schedule', 'set', 'mail', 'daily', none],
    ['queue', 'token', 'list', '--tokens-file', none],
    ['queue', 'token', 'revoke', 'id', '--tokens-file', none],
    ['queue', 'secret', 'list', '--secrets-file', none],
    ['queue', 'secret', 'remove', 'x', '--secrets-file', none],
    ['queue', 'audit', 'verify', '--data', none],
    ['pipeline', 'run', none],
    ['daemon', 'token', 'show', '--data', none],
  ])('%s %s %s %s %s', async (...args) => {
    const { code, out, err } = await ctl(args);
    expect([code, out]).toEqual([1, '']);
    const json = await ctl([...args, '--json']);
    expect([json.code, json.out]).toEqual([1, '']);
    expect(JSON.parse(json.err)).toMatchObject({ error: { message: expect.any(String) } });
    expect(err).not.toMatch(/internal error|ENOENT/);
  });
});

test('ctl db import: line 0 is a usage error', async () => {
  const lines = file('people.ndjson', '{}\n');
  const { code, err } = await ctl(['db', 'import', 'people', lines, '--start-line', '0']);
  expect([code, err]).toEqual([
    2,
    'ctl: --start-line must be a whole number, 1 or more, not "0".\n',
  ]);
});

test('exit code 1: a restore that is refused', async () => {
  const from = file('not-a-backup', 'x'.repeat(1_000));
  const used = join(folder, 'used');
  mkdirSync(used);
  writeFileSync(join(used, 'notes'), '');
  for (const data of [used, join(folder, 'fresh')]) {
    const { code, out, err } = await ctl(['db', 'restore', '--from', from, '--data', data]);
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(data === used ? /is not empty/ : /not-a-backup/);
  }
  const wrong = ['db', 'restore', '--from', from, '--data', join(folder, 'fresh'), '--to', 'soon'];
  expect((await ctl(wrong)).code).toBe(2);
});
