import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { afterEach, expect, test } from 'vitest';
import { parseStat, procReader, treesOf, parsePsLine, psReader } from './processes.js';

const made: string[] = [];
afterEach(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
});
function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'mr-processes-'));
  made.push(directory);
  return directory;
}

const row = (pid: number, parent: number, session = 0) => ({
  pid,
  parent,
  session,
  cpuMs: pid,
  rss: pid * 100,
});

test('a tree is a process with all below it, and what it left behind in its session', () => {
  const rows = [row(1, 0), row(10, 1, 10), row(11, 10, 10), row(12, 11, 12), row(13, 1, 10)];
  const trees = treesOf([...rows, row(20, 1, 20)], [10, 20, 99]);
  expect([...trees]).toEqual([
    [10, { cpuMs: 10 + 11 + 12 + 13, rss: 4_600 }],
    [20, { cpuMs: 20, rss: 2_000 }],
  ]);
});

test('a name with brackets and spaces does not move the figures of /proc', () => {
  const line = `42 (a) R (b c) S 7 42 41 0 -1 4194304 1 2 3 4 100 20 3 1 20 0 1 0 5 6 250 9`;
  expect(parseStat(line, 4096)).toEqual({
    pid: 42,
    parent: 7,
    session: 41,
    cpuMs: 1240,
    rss: 250 * 4096,
  });
  expect(parseStat('', 4096)).toBeUndefined();
  expect(parseStat('42 (cut', 4096)).toBeUndefined();
});

test('a process that ends between the listing and the look is left out', async () => {
  const directory = scratch();
  for (const name of ['self', '41', '42', 'uptime']) mkdirSync(join(directory, name));
  const stat = `41 (x) S 1 41 41 0 -1 0 0 0 0 0 5 0 0 0 20 0 1 0 5 6 10 9`;
  writeFileSync(join(directory, '41', 'stat'), stat);
  writeFileSync(join(directory, 'self', 'stat'), stat.replace(' 10 9', ' 0 9'));
  expect(await procReader(directory)()).toEqual([
    { pid: 41, parent: 1, session: 41, cpuMs: 50, rss: 40_960 },
  ]);
});

test.runIf(platform() === 'linux')('our own memory is what Node says, child included', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000); console.log(1)']);
  try {
    await once(child.stdout, 'data');
    const rows = await procReader()();
    const { rss } = rows.find(({ pid }) => pid === process.pid)!;
    expect(rss / process.memoryUsage.rss()).toBeGreaterThan(0.5);
    expect(rss / process.memoryUsage.rss()).toBeLessThan(2);
    const trees = treesOf(rows, [process.pid, child.pid!]);
    expect(trees.get(child.pid!)!.rss).toBeGreaterThan(10_000_000);
    expect(trees.get(process.pid)!.rss).toBeGreaterThan(rss + 10_000_000);
  } finally {
    child.kill('SIGKILL');
  }
});

test('the lines of ps are read, of every system', () => {
  expect(parsePsLine('  501     1   501  10240   1:02.50')).toEqual({
    pid: 501,
    parent: 1,
    session: 501,
    rss: 10_485_760,
    cpuMs: 62_500,
  });
  expect(parsePsLine('7 1 7 8 01:02:03')!.cpuMs).toBe(3_723_000);
  expect(parsePsLine('7 1 7 8 2-01:02:03')!.cpuMs).toBe(176_523_000);
  expect(parsePsLine('')).toBeUndefined();
  expect(parsePsLine('PID PPID PGID RSS TIME')).toBeUndefined();
});

test('ps is asked where there is no /proc, and its failure is one', async () => {
  const file = join(scratch(), 'ps');
  const program = (text: string) => {
    writeFileSync(file, `#!/bin/sh\n${text}\n`);
    chmodSync(file, 0o755);
  };
  const read = psReader({ clock: systemClock, environment: { PATH: '/usr/bin:/bin' }, file });
  program('[ "$1" = -axo ] && echo "  9 1 9 4 0:01.00"; echo "10 9 9 4 0:02.00"');
  expect(treesOf(await read(), [9]).get(9)).toEqual({ cpuMs: 3_000, rss: 8_192 });
  program('exit 1');
  await expect(read()).rejects.toThrow('did not list the processes');
});
