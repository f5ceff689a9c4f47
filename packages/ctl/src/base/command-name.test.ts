import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asTyped, commandName, programName } from './command-name.js';
import type { Lifecycle } from './lifecycle.js';
import { run } from '../run.js';
import type { CommandShape } from './shape.js';

const npx = { npm_command: 'exec' };
const link = '/p/node_modules/.bin';

test.each([
  ['/usr/bin/ctl', {}, 'ctl'],
  ['/usr/bin/millrace', {}, 'millrace'],
  ['C:\\x/millrace.js', {}, 'millrace'],
  [`${link}/millrace`, npx, 'npx millrace'],
  [`${link}/ctl`, npx, 'npx ctl'],
  // A program that npx runs, which starts the installed command.
  ['/usr/bin/millrace', npx, 'millrace'],
])('command name: %s is shown as typed', (script, env, name) => {
  expect(commandName(script, env, '/')).toBe(name);
});

test('command name: in a clone it is bin/ctl, but not for an installed command', () => {
  const clone = mkdtempSync(join(tmpdir(), 'millrace-clone-'));
  try {
    mkdirSync(join(clone, 'bin'));
    writeFileSync(join(clone, 'bin', 'ctl'), '');
    expect(commandName('/x/bin/ctl', {}, clone)).toBe('bin/ctl');
    expect(commandName('/usr/bin/millrace', {}, clone)).toBe('millrace');
  } finally {
    rmSync(clone, { recursive: true });
  }
});

test('program name: is that of the file, whoever runs it', () => {
  expect(programName(`${link}/millrace`)).toBe('millrace');
  expect(programName('/x/vitest.mjs')).toBe('ctl');
});

test.each([
  ['Run `ctl up`, or: ctl db serve.', 'Run `npx millrace up`, or: npx millrace db serve.'],
  ["Run 'ctl --help' for usage.", "Run 'npx millrace --help' for usage."],
  ['Usage: ctl <command>', 'Usage: npx millrace <command>'],
  ['Or:\n  ctl agent logs', 'Or:\n  npx millrace agent logs'],
  ['touch a; ctl status', 'touch a; npx millrace status'],
  ['source <(ctl completion bash)', 'source <(npx millrace completion bash)'],
  ['The ctl of others is theirs. `ctl`', 'The ctl of others is theirs. `ctl`'],
])('advice: %s', (advice, typed) => {
  expect(asTyped(advice, `${link}/millrace`, npx)).toBe(typed);
  expect(asTyped(advice, '/usr/bin/millrace', {})).toBe(
    typed.replace('npx ', '').replace('npx ', ''),
  );
  expect(asTyped(advice, '/usr/bin/ctl', {})).toBe(advice);
  expect(asTyped(advice, `${link}/vitest`, npx)).toBe(advice);
});

describe('started as millrace', () => {
  const script = process.argv[1]!;
  beforeAll(() => {
    process.argv[1] = '/usr/bin/millrace';
  });
  afterAll(() => {
    process.argv[1] = script;
  });

  async function millrace(args: readonly string[]) {
    let [out, err] = ['', ''];
    const outside = {
      stdout: { write: (text: string | Uint8Array) => (out += text.toString()) },
      stderr: { write: (text: string | Uint8Array) => (err += text.toString()) },
      env: { HOME: '/nonexistent' },
    };
    const lifecycle: Lifecycle = {
      interrupted: new AbortController().signal,
      serve: (work) => work(Promise.resolve()),
      onInterrupt: () => () => undefined,
      handOver: (work) => work(),
    };
    return { code: await run(args, outside, lifecycle), out, err };
  }

  const pathsOf = ({ path, commands }: CommandShape): string[] => [
    path,
    ...commands.flatMap(pathsOf),
  ];

  test('help: no command says ctl, and its data keeps the name of the contract', async () => {
    const tree = JSON.parse((await millrace(['--help', '--json'])).out) as CommandShape;
    expect(tree.path).toBe('ctl');
    const named: string[] = [];
    for (const path of pathsOf(tree)) {
      const { out } = await millrace([...path.split(' ').slice(1), '--help']);
      expect(out).toContain(path.replace('ctl', 'Usage: millrace'));
      const lines = out.split('\n').filter((line) => /\bctl\b(?!-|\.)/.test(line));
      named.push(...lines.map((line) => `${path}: ${line}`));
    }
    expect(named).toEqual([]);
  });

  test('errors: have the name in front and in their advice', async () => {
    const wrong = await millrace(['queue', 'lst']);
    expect(wrong.err).toBe(
      "millrace: unknown command 'lst'. Did you mean one of list, ls?\n" +
        "Run 'millrace queue --help' for usage.\n",
    );
    const away = await millrace(['queue', 'list', '--url', 'http://127.0.0.1:1']);
    expect(away.err).toMatch(/^millrace: no queue server answers .*`millrace queue serve`/);
    const json = await millrace(['queue', 'list', '--url', 'http://127.0.0.1:1', '--json']);
    expect(JSON.parse(json.err).error.message).toContain('`millrace up`');
  });
});
