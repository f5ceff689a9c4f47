import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { ctl, describedCommands, wordsOf } from './in-process.test-support.js';

/* What holds for every command alike. */

const all = await describedCommands();
const groups = all.filter(
  ({ commands, usage }) => commands.length > 0 && /\[command\]/.test(usage),
);
const runsByItself = new Set([
  'ctl inbox',
  'ctl usage',
  'ctl config',
  'ctl cost',
  'ctl check',
  'ctl git',
]);

test.each(
  groups.filter(({ path }) => !runsByItself.has(path)).map((group) => [group.path, group] as const),
)(
  '%s without a subcommand: help on stdout, the error on stderr, exit code 2',
  async (path, group) => {
    const { code, out, err } = await ctl(wordsOf(group));
    expect([code, out.includes(`Usage: ${path} `)]).toEqual([2, true]);
    expect(err).toMatch(new RegExp(`^ctl: '${path}' needs one of: `));
    const json = await ctl([...wordsOf(group), '--json']);
    expect([json.code, json.out]).toEqual([2, '']);
    expect(JSON.parse(json.err)).toMatchObject({ error: { code: 'USAGE' } });
  },
);

test.each(all.map((command) => [command.path, command] as const))(
  '%s --help: help on stdout, exit code 0',
  async (path, command) => {
    const { code, out, err } = await ctl([...wordsOf(command), '--help']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain(`Usage: ${path}`);
  },
);

/** These pass unknown flags on to another program. */
const passesOn = /^ctl (check|git)\b/;

test.each(
  all.filter(({ path }) => !passesOn.test(path)).map((command) => [command.path, command] as const),
)('%s --no-such-flag: exit code 2', async (_path, command) => {
  const { code, out, err } = await ctl([...wordsOf(command), '--no-such-flag']);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  // A missing option is reported before an unknown one.
  expect(err).toMatch(/--no-such-flag|required option/);
});

test.each([
  ['queue submit mail mail.send --file /nonexistent/x', '/nonexistent/x: no such file'],
  ['queue submit mail --batch /nonexistent/x', '/nonexistent/x: no such file'],
  ['queue config set mail /nonexistent/x', '/nonexistent/x: no such file'],
  ['pipeline run /nonexistent/x', '/nonexistent/x: no such file'],
  ['queue audit verify --data /nonexistent/x', '/nonexistent/x contains no queue'],
  ['queue list --token-file /nonexistent/x', '--token-file /nonexistent/x: no such file'],
])('%s: a file that is not there is exit code 1', async (line, text) => {
  const { code, out, err } = await ctl(line.split(' '));
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toContain(text);
});

test.each([
  ['queue submit mail mail.send --priority 99', '--priority must be 0 to 9'],
  ['queue submit mail mail.send --priority high', '--priority must be'],
  ['queue submit mail mail.send --delay soon', '--delay'],
  ['db find people --timeout soon', '--timeout'],
  ['db find people age>>', 'is not an operator'],
  ['db count people age==5', 'is not an operator'],
  ['db export people age>', 'a value must follow'],
  ['agent logs docs --lines 0', '--lines must be 1 to'],
])('%s: a bad flag value is exit code 2', async (line, text) => {
  const { code, out, err } = await ctl(line.split(' '));
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(text);
});

test('connect: without a database it says so and leaves nothing open', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ctl-connect-'));
  const config = join(folder, 'connectors.yaml');
  writeFileSync(
    config,
    'connectors: [{ name: a, collection: b, queue: c, handler_ref: d, payload: { id: "{{id}}" } }]\n',
  );
  const servers = () =>
    process.getActiveResourcesInfo().filter((kind) => kind === 'TCPServerWrap').length;
  const before = servers();
  try {
    const { code, err } = await ctl(['connect', '--config', config]);
    expect(code).toBe(1);
    expect(err).toMatch(/^ctl: no database answers at .*Start one with `ctl db serve`/);
    await expect.poll(servers).toBe(before);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('down: says so when the process belongs to another user', async () => {
  const data = mkdtempSync(join(tmpdir(), 'ctl-down-'));
  writeFileSync(join(data, 'up.json'), JSON.stringify({ pid: process.pid, parts: {} }));
  const kill = vi.spyOn(process, 'kill').mockImplementation(() => {
    throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
  });
  try {
    const { code, err } = await ctl(['down', '--data', data]);
    expect(code).toBe(1);
    expect(err).toBe(
      `ctl: Process ${process.pid} on ${data} belongs to another user. Run this command as that user.\n`,
    );
  } finally {
    kill.mockRestore();
    rmSync(data, { recursive: true });
  }
});

test('agent stop: accepts --yes as agent remove does', async () => {
  const { code, err } = await ctl([
    'agent',
    'stop',
    'docs',
    '--yes',
    '--url',
    'http://127.0.0.1:1',
  ]);
  expect(code).toBe(1);
  expect(err).toContain('no daemon answers');
});
