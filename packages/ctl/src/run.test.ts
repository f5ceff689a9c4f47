import { Refusal, UsageError } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import type { Lifecycle } from './base/lifecycle.js';
import type { GroupEntry, TopCommand } from './base/groups.js';
import { registry } from './registry.js';
import { run } from './run.js';
import type { CommandShape } from './base/shape.js';

const lifecycle: Lifecycle = {
  interrupted: new AbortController().signal,
  serve: (work) => work(Promise.resolve()),
  onInterrupt: () => () => undefined,
  handOver: (work) => work(),
};

const top: TopCommand = {
  description: 'Millwork.',
  examples: [['ctl mill grind', 'grind']],
  commands: {
    grind: { summary: '', description: 'Grinds.', examples: [], run: async () => () => undefined },
    boom: {
      summary: '',
      description: 'Breaks.',
      arguments: [['<how>', 'how']],
      examples: [],
      run: async () => boom,
    },
  },
};

function boom(how: string): never {
  if (how === 'usage') throw new UsageError('the wheel\n  needs water');
  if (how === 'refusal') throw new Refusal('WHEEL_STUCK', 'the wheel is stuck');
  if (how === 'file') throw Object.assign(new Error('open'), { code: 'ENOENT', path: 'a.json' });
  if (how === 'system') throw Object.assign(new Error('no way in'), { code: 'EACCES' });
  throw new TypeError('wheel is undefined');
}

/** A group with subcommands, as `queue` or `db` will be. */
const group: GroupEntry = {
  name: 'mill',
  summary: 'Millwork',
  load: async () => ({
    top: {
      mill: top,
      wheel: top,
    },
  }),
};

async function ctl(args: string[], entries: readonly GroupEntry[], env = {}) {
  let [out, err] = ['', ''];
  const outside = {
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
    env,
  };
  const code = await run(args, outside, lifecycle, entries);
  return { code, out, err };
}

test('a usage error is one line and exit code 2', async () => {
  expect(await ctl(['mill', 'boom', 'usage'], [group])).toEqual({
    code: 2,
    out: '',
    err: 'ctl: the wheel needs water\n',
  });
});

test('trouble with a file names the file', async () => {
  const { code, err } = await ctl(['mill', 'boom', 'file'], [group]);
  expect([code, err]).toEqual([1, 'ctl: a.json: no such file or directory.\n']);
});

test('a refusal is its sentence and exit code 1, and its code under --json', async () => {
  const plain = await ctl(['mill', 'boom', 'refusal'], [group]);
  expect([plain.code, plain.err]).toEqual([1, 'ctl: the wheel is stuck\n']);
  const json = await ctl(['mill', 'boom', 'refusal', '--json'], [group]);
  expect(JSON.parse(json.err)).toEqual({
    error: { code: 'WHEEL_STUCK', message: 'the wheel is stuck' },
  });
});

test('an error of the system keeps its code', async () => {
  const { code, err } = await ctl(['--json', 'mill', 'boom', 'system'], [group]);
  expect(code).toBe(1);
  expect(JSON.parse(err)).toEqual({ error: { code: 'EACCES', message: 'no way in' } });
});

test('a bug says so without its stack, and with it under MILLRACE_DEBUG=1', async () => {
  const quiet = await ctl(['mill', 'boom', 'bug'], [group]);
  expect(quiet.code).toBe(1);
  expect(quiet.err).toContain('ctl: internal error: wheel is undefined\n');
  expect(quiet.err).not.toContain('run.test.ts');
  const loud = await ctl(['mill', 'boom', 'bug'], [group], { MILLRACE_DEBUG: '1' });
  expect(loud.err).toContain('run.test.ts');
  const json = await ctl(['mill', 'boom', 'bug', '--json'], [group], { MILLRACE_DEBUG: '1' });
  expect(JSON.parse(json.err).error.stack).toContain('run.test.ts');
});

test('a group without a subcommand shows its help and names them, with exit code 2', async () => {
  const { code, out, err } = await ctl(['mill'], [group]);
  expect([code, out]).toEqual([2, expect.stringContaining('Usage: ctl mill ')]);
  expect(err).toContain("'ctl mill' needs one of: grind, boom");
});

test('a misspelt subcommand is pointed out, with --help and under help too', async () => {
  const lines = [
    ['mill', 'gring'],
    ['mill', 'gring', '--help'],
    ['help', 'mill', 'gring'],
  ];
  for (const args of lines) {
    const { code, out, err } = await ctl(args, [group, ...registry]);
    expect([code, out], args.join(' ')).toEqual([2, '']);
    expect(err).toBe(
      "ctl: unknown command 'gring'. Did you mean grind?\nRun 'ctl mill --help' for usage.\n",
    );
  }
});

test('only the group that is used is loaded', async () => {
  const loaded: string[] = [];
  const entries = ['mill', 'wheel'].map((name) => ({
    ...group,
    name,
    load: () => {
      loaded.push(name);
      return group.load();
    },
  }));
  await ctl([], entries);
  expect(loaded).toEqual([]);
  await ctl(['wheel', 'grind'], entries);
  expect(loaded).toEqual(['wheel']);
});

test('every command has a summary or description and an example that begins with its own name', async () => {
  const { code, out } = await ctl(['help', '--json'], registry);
  expect(code).toBe(0);
  const root: CommandShape = JSON.parse(out);
  const lacking = flatten(root).filter(
    ({ description, examples, path }) =>
      description === '' || !examples.some(({ line, note }) => line.includes(path) && note !== ''),
  );
  expect(lacking.map(({ path }) => path)).toEqual([]);
  expect(root.commands.map(({ name }) => name)).toEqual(registry.map(({ name }) => name));
});

function flatten(shape: CommandShape): CommandShape[] {
  return [shape, ...shape.commands.flatMap(flatten)];
}
