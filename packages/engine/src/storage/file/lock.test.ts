import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { describe, expect, test } from 'vitest';
import { useScratch } from '../../../test/scratch.test-support.js';
import { DirectoryLock } from './directory.js';

const scratch = useScratch();
const onLinux = existsSync('/proc/self/stat');

interface Holder {
  pid?: number;
  started?: string;
  host?: string;
  token?: string;
}

/** A directory with a lock that someone left there. */
function leftBy(holder: Holder | string): string {
  const directory = scratch.directory();
  const whole = { pid: 1, started: '1', host: hostname(), token: 'left' };
  const text = typeof holder === 'string' ? holder : JSON.stringify({ ...whole, ...holder });
  writeFileSync(join(directory, 'LOCK'), text);
  return directory;
}

const take = (directory: string) => new DirectoryLock(directory, scratch.clock);
const startedAt = (pid: number) => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]!;
};

describe('a lock', () => {
  test('is for one opener at a time, and says who has it', () => {
    const directory = scratch.directory();
    const first = take(directory);
    expect(() => take(directory)).toThrow(UsageError);
    expect(() => take(directory)).toThrow(
      `The database in ${directory} is in use by process ${process.pid} on ${hostname()}`,
    );
    first.release();
    const second = take(directory);
    expect(() => take(directory)).toThrow('in use');
    second.release();
    expect(readdirSync(directory)).toEqual([]);
  });

  test('shows a sign of life every two seconds', () => {
    const directory = scratch.directory();
    const lock = take(directory);
    const seen = () => statSync(join(directory, 'LOCK')).mtimeMs;
    scratch.clock.advance(2_000);
    const first = seen();
    expect(first).toBe(scratch.clock.now());
    scratch.clock.advance(2_000);
    expect(seen()).toBe(first + 2_000);
    lock.release();
    expect(scratch.clock.timers).toBe(0);
  });

  test('is not given up by one who has lost it', () => {
    const directory = scratch.directory();
    const lock = take(directory);
    const other = JSON.stringify({ pid: 1, started: '1', host: 'elsewhere', token: 'other' });
    writeFileSync(join(directory, 'LOCK'), other);
    lock.release();
    expect(readFileSync(join(directory, 'LOCK'), 'utf8')).toBe(other);
  });
});

describe('a lock that was left behind is taken over', () => {
  const ended = () => spawnSync('true').pid;

  test.each<[string, () => Holder | string]>([
    ['by a process that has ended', () => ({ pid: ended(), started: '1' })],
    ['half written', () => '{"pid": 1'],
    ['empty', () => ''],
    ['by nobody', () => 'null'],
    ['without a number', () => ({ pid: undefined as never })],
  ])('%s', (_what, holder) => {
    const directory = leftBy(holder());
    const lock = take(directory);
    expect(() => take(directory)).toThrow('in use');
    lock.release();
    expect(readdirSync(directory)).toEqual([]);
  });

  test.runIf(onLinux)('by a process whose number another one has now', () => {
    const lock = take(leftBy({ pid: process.ppid, started: '1' }));
    lock.release();
  });

  test.runIf(onLinux)('by a process that was killed and not yet buried', async () => {
    // `exec` leaves the killed child with a parent that never asks for it; the child waits for that.
    const script = 'sh -c "sleep 1; kill -9 \\$\\$" & echo $!; exec sleep 30';
    const parent = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    try {
      const text = await new Promise<Buffer>((resolve) => parent.stdout.once('data', resolve));
      const pid = Number(text.toString());
      const stat = () => readFileSync(`/proc/${pid}/stat`, 'utf8');
      while (!stat().includes(') Z ')) await new Promise((resolve) => setTimeout(resolve, 5));
      const lock = take(leftBy({ pid, started: startedAt(pid) }));
      lock.release();
    } finally {
      parent.kill('SIGKILL');
    }
  });

  test('on another host, when it has been silent for 15 s', () => {
    const directory = leftBy({ host: 'elsewhere' });
    const touch = (agoMs: number) => {
      const at = (scratch.clock.now() - agoMs) / 1_000;
      utimesSync(join(directory, 'LOCK'), at, at);
    };
    touch(14_000);
    expect(() => take(directory)).toThrow('in use by process 1 on elsewhere');
    touch(16_000);
    take(directory).release();
    expect(readdirSync(directory)).toEqual([]);
  });

  test('by one opener alone: a second that comes in the middle is refused', () => {
    const directory = leftBy({ pid: ended(), token: 'dead' });
    const parent = { pid: process.ppid, started: onLinux ? startedAt(process.ppid) : '' };
    const rival = JSON.stringify({ ...parent, host: hostname(), token: 'rival' });
    writeFileSync(join(directory, 'LOCK.after.dead'), rival);
    expect(() => take(directory)).toThrow(`in use by process ${process.ppid}`);
    expect(readdirSync(directory).sort()).toEqual(['LOCK', 'LOCK.after.dead']);
  });

  test('also when those who tried before were killed in the middle', () => {
    const directory = leftBy({ pid: ended(), token: 'dead' });
    for (const [after, token] of [
      ['dead', 'first'],
      ['first', 'second'],
    ]) {
      const rival = { pid: ended(), started: '1', host: hostname(), token };
      writeFileSync(join(directory, `LOCK.after.${after}`), JSON.stringify(rival));
    }
    const lock = take(directory);
    expect(readdirSync(directory)).toEqual(['LOCK']);
    lock.release();
  });
});

test.runIf(onLinux)('a process that lives keeps its lock, whoever its parent is', () => {
  const directory = leftBy({ pid: process.ppid, started: startedAt(process.ppid) });
  expect(() => take(directory)).toThrow(`in use by process ${process.ppid}`);
});

test.runIf(onLinux)('another thread of this process keeps its lock', () => {
  // As a second copy of this module would have written it.
  const directory = leftBy({ pid: process.pid, started: startedAt(process.pid) });
  expect(() => take(directory)).toThrow(`in use by process ${process.pid}`);
});
