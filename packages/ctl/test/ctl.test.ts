import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import type { CommandShape } from '../src/base/shape.js';
import { runCtl } from './queue-server.js';
import { CTL, ctl, ctlHere, startCtl } from './run-ctl.js';

const again = inCampaign('process');

const run = promisify(execFile);
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ctl-process-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('version and help', () => {
  test('--version is the version alone, also as JSON', async () => {
    const plain = await ctl(['--version']);
    expect(plain).toMatchObject({ code: 0, err: '' });
    expect(plain.out).toMatch(/^\d+\.\d+\.\d+\n$/);
    const json = await ctl(['--json', '--version']);
    expect(JSON.parse(json.out)).toEqual({ version: plain.out.trim() });
  });

  again('a bare ctl is its help, with exit code 0', async () => {
    const [bare, help, flag] = await Promise.all([ctl([]), ctl(['help']), ctl(['--help'])]);
    expect(bare).toMatchObject({ code: 0, err: '', out: help.out });
    expect(flag.out).toBe(help.out);
    expect(bare.out).toContain('Usage: ctl <command>');
  });

  test('every command shows a description, examples and exit codes, the same both ways', async () => {
    const { out } = await ctl(['help', '--json']);
    const everything: CommandShape = JSON.parse(out);
    for (const { path, description } of flatten(everything)) {
      const names = path.split(' ').slice(1);
      // Without a process for each: there are more than a hundred commands.
      const [flag, help] = [await runCtl([...names, '--help']), await runCtl(['help', ...names])];
      expect(flag, path).toMatchObject({ code: 0, err: '' });
      expect(flag.out).toContain(description.slice(0, 40));
      expect(flag.out).toMatch(/\nExamples:\n {2}.*\bctl\b/);
      expect(flag.out).toMatch(
        /\nExit codes:\n {2}0 {2}.+\n {2}1 {2}.+\n {2}2 {2}.*usage error.*\n/,
      );
      expect(help.out).toBe(flag.out);
      const longest = Math.max(...flag.out.split('\n').map((line) => line.length));
      expect(longest, path).toBeLessThanOrEqual(80);
    }
  });
});

describe('mistakes', () => {
  const cases: readonly [line: string, first: string, hint: string][] = [
    ['dcotor', "unknown command 'dcotor'. Did you mean doctor?", 'ctl --help'],
    ['usage spnd', "unknown command 'spnd'. Did you mean spend?", 'ctl usage --help'],
    ['dcotor --help', "unknown command 'dcotor'. Did you mean doctor?", 'ctl --help'],
    ['help dcotor', "unknown command 'dcotor'. Did you mean doctor?", 'ctl --help'],
    ['--jsn doctor', "unknown option '--jsn'. Did you mean --json?", 'ctl --help'],
    ['up --dat x', "unknown option '--dat'. Did you mean --data?", 'ctl up --help'],
    ['up --data', "option '--data <dir>' argument missing", 'ctl up --help'],
    ['completion', "missing required argument 'shell'", 'ctl completion --help'],
  ];
  test.for(cases)('ctl %s', async ([line, first, hint]) => {
    const { code, out, err } = await ctl(line.split(' '));
    expect([code, out]).toEqual([2, '']);
    expect(err).toBe(`ctl: ${first}\nRun '${hint}' for usage.\n`);
  });

  test('under --json the error alone is on stderr', async () => {
    const { code, out, err } = await ctl(['doctor', '--nope', '--json']);
    expect([code, out]).toEqual([2, '']);
    expect(JSON.parse(err)).toEqual({
      error: { code: 'USAGE', message: "unknown option '--nope'" },
    });
  });

  test('MILLRACE_DEBUG=1 adds the stack', async () => {
    const { code, err } = await ctl(['nope'], { MILLRACE_DEBUG: '1' });
    expect(code).toBe(2);
    expect(err).toMatch(/\n {4}at .*command\.js/);
  });

  test('a failure that is nobody’s spelling is exit code 1, with what to do', async () => {
    const { code, err } = await ctl(['up', '--data', '/dev/null/x']);
    expect(code).toBe(1);
    expect(err).toMatch(/^ctl: cannot store data in \/dev\/null\/x: .*Choose another.*\n$/);
  });
});

describe('colour', () => {
  test('a pipe gets none, FORCE_COLOR brings it, NO_COLOR takes it away again', async () => {
    const forced = { FORCE_COLOR: '1' };
    for (const args of [['help'], ['doctor']]) {
      expect(coloured((await ctlHere(args)).out), args[0]).toBe(false);
      expect(coloured((await ctlHere(args, forced)).out), args[0]).toBe(true);
      expect(coloured((await ctlHere(args, { ...forced, NO_COLOR: '1' })).out), args[0]).toBe(
        false,
      );
    }
    expect(coloured((await ctlHere(['nope'])).err)).toBe(false);
    expect(coloured((await ctlHere(['nope'], forced)).err)).toBe(true);
  });

  again('JSON is never coloured', async () => {
    const { out } = await ctlHere(['doctor', '--json'], { FORCE_COLOR: '1' });
    expect(JSON.parse(out)).toHaveProperty('checks');
  });
});

describe('endings', () => {
  test('a reader that goes away ends the command quietly', async () => {
    const script = `"$0" "$1" help --json | head -c 1; echo " \${PIPESTATUS[0]}"`;
    const { stdout, stderr } = await run('bash', ['-c', script, process.execPath, CTL]);
    expect([stdout, stderr]).toEqual(['{ 0\n', '']);
    const closed = startCtl(['help', '--json']);
    closed.child.stdout.destroy();
    expect(await closed.ended).toMatchObject({ code: 0, err: '' });
  });

  test('Ctrl-C ends a command with 130, and what it was waiting for with it', async () => {
    const bin = join(folder, 'slow');
    const pidFile = join(folder, 'slow.pid');
    await mkdir(bin);
    const slow = `#!/bin/sh\necho $$ > ${pidFile}\nexec sleep 60\n`;
    await writeFile(join(bin, 'npm'), slow, { mode: 0o755 });
    const { child, ended } = startCtl(['doctor'], { PATH: `${bin}:${process.env['PATH']}` });
    const pid = await eventually(async () => {
      return Number((await readFile(pidFile, 'utf8')).trim()) || undefined;
    });
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, signal: null, err: '' });
    await eventually(() => (isAlive(pid) ? undefined : true));
  });
});

/** The usual ones may be taken on the machine that runs the tests. */
const anyPorts = {
  MILLRACE_DB_GRPC: '127.0.0.1:0',
  MILLRACE_DB_HTTP: '127.0.0.1:0',
  MILLRACE_QUEUE_LISTEN: '127.0.0.1:0',
  MILLRACE_QUEUE_METRICS_LISTEN: '127.0.0.1:0',
  MILLRACE_LISTEN: '127.0.0.1:0',
  MILLRACE_LOG: 'warn',
};

describe('up', () => {
  again('names the three parts and their addresses, and Ctrl-C stops it with 0', async () => {
    const data = join(folder, 'up');
    const { child, ended, says } = startCtl(['up', '--data', data], anyPorts);
    await says('Ctrl-C');
    expect((await stat(data)).mode & 0o777).toBe(0o700);
    child.kill('SIGINT');
    const { code, signal, out, err } = await ended;
    expect({ code, signal, err }).toEqual({ code: 0, signal: null, err: '' });
    expect(out).toMatch(/database +grpc:\/\/127\.0\.0\.1:\d+ +running/);
    expect(out).toMatch(/http:\/\/127\.0\.0\.1:\d+ +running/);
    expect(out).toMatch(/queue +http:\/\/127\.0\.0\.1:\d+ +running/);
    expect(out).toMatch(/daemon +http:\/\/127\.0\.0\.1:\d+ +running/);
    expect(out).toContain(data);
  });

  again('under --json every line is an event, and SIGTERM stops it too', async () => {
    const args = ['up', '--json', '--data', join(folder, 'up')];
    const { child, ended, says } = startCtl(args, anyPorts);
    await says('"ready"');
    child.kill('SIGTERM');
    const { code, out } = await ended;
    expect(code).toBe(0);
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).event)
        .join(' '),
    ).toMatch(/^(listening ){7}ready stopped$/);
  });
});

describe('doctor', () => {
  test('is 0 with warnings and 1 with a failure, and says what to do', async () => {
    const good = await ctl(['doctor', '--data', join(folder, 'fresh'), '--json']);
    expect(good.code).toBe(0);
    const report = JSON.parse(good.out);
    expect(report.ok).toBe(true);
    expect(report.checks.map(({ name }: { name: string }) => name)).toEqual([
      'node',
      'npm',
      'git',
      'tmux',
      'gh',
      'data directory',
      'credentials',
      'port 5433',
      'port 8080',
      'port 8081',
      'port 9464',
      'port 8082',
      'port 8765',
    ]);
    for (const { status, advice } of report.checks) {
      expect(status === 'ok').toBe(advice === null);
    }
    const bad = await ctl(['doctor', '--data', '/dev/null/x']);
    expect(bad.code).toBe(1);
    expect(bad.out).toMatch(/^fail {2}data directory .*--data DIR\.$/m);
  });

  again('fits the screen', async () => {
    const { out } = await ctl(['doctor', '--data', '/dev/null/x'], { COLUMNS: '60' });
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(60);
  });
});

test('completion prints a script bash accepts, knowing the real commands', async () => {
  const { code, out } = await ctl(['completion', 'bash']);
  expect(code).toBe(0);
  const readline = `${out}\nCOMP_WORDS=(ctl doc); COMP_CWORD=1; _ctl; echo "\${COMPREPLY[@]}"`;
  expect((await run('bash', ['--norc', '-c', readline])).stdout).toBe('doctor\n');
});

test('on a Node that is too old it says so in one line, with exit code 2', async () => {
  const old = join(folder, 'old-node.cjs');
  const versions = '{ value: { ...process.versions, node: "20.18.3" } }';
  await writeFile(old, `Object.defineProperty(process, 'versions', ${versions});`);
  const requests = run(process.execPath, ['--require', old, CTL, '--version']);
  await expect(requests).rejects.toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /^ctl: Millrace needs Node 20\.19 or later; this is v[\d.]+\.\n$/,
    ),
  });
});

test('without a build it says so in one line, with exit code 2', async () => {
  const copy = join(folder, 'bin', 'ctl');
  await mkdir(join(folder, 'bin'));
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  await cp(CTL, copy);
  await expect(run(process.execPath, [copy, '--version'])).rejects.toMatchObject({
    code: 2,
    stdout: '',
    stderr: 'ctl: not built yet: run `npm start`, or `npm run build`\n',
  });
});

function coloured(text: string): boolean {
  return text.includes('\u001B[');
}

function flatten(shape: CommandShape): CommandShape[] {
  return [shape, ...shape.commands.flatMap(flatten)];
}

async function eventually<T>(
  screen: () => T | undefined | Promise<T | undefined>,
  patienceMs = 60_000,
): Promise<T> {
  const end = performance.now() + patienceMs;
  for (;;) {
    const found = await Promise.resolve(screen()).catch(() => undefined);
    if (found !== undefined) return found;
    if (performance.now() > end) throw new Error('it did not happen in time');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
