import { EventEmitter } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listeningLog } from '../../test/http/sample-server.js';
import { systemClock } from '../base/clock-and-random.js';
import { UsageError } from '../base/errors.js';
import { createMetrics } from '../base/metrics.js';
import { watchTokens, watchFile } from './tokens.js';

let folder: string;
let file: string;
const closing: (() => void)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watched-'));
  file = join(folder, 'numbers.txt');
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
  rmSync(folder, { recursive: true });
});

function follow(path = file, clock = systemClock) {
  const log = listeningLog();
  const signals = new EventEmitter();
  const metrics = createMetrics('test');
  const parse = (text: string, from: string) => {
    const number = Number(text);
    if (Number.isNaN(number)) throw new UsageError(`${from}:1: must be a number`);
    return number;
  };
  const watched = watchFile({ file: path, name: 'numbers', parse, clock, log, signals, metrics });
  closing.push(() => {
    watched.close();
    metrics.close();
  });
  return { watched, log, signals, metrics };
}

describe('a change on the disk', () => {
  test('is followed when the file is written in place', async () => {
    writeFileSync(file, '1');
    const { watched } = follow();
    expect(watched.current).toBe(1);
    writeFileSync(file, '2');
    await expect.poll(() => watched.current).toBe(2);
    writeFileSync(file, '3');
    await expect.poll(() => watched.current).toBe(3);
  });

  test('is followed when another file is renamed over it, again and again', async () => {
    writeFileSync(file, '1');
    const { watched } = follow();
    for (const next of ['2', '3', '4']) {
      writeFileSync(`${file}.new`, next);
      renameSync(`${file}.new`, file);
      await expect.poll(() => watched.current).toBe(Number(next));
    }
  });

  test('is followed when a link in the folder is swapped', async () => {
    for (const version of ['1', '2']) {
      mkdirSync(join(folder, `v${version}`));
      writeFileSync(join(folder, `v${version}`, 'numbers.txt'), version);
    }
    symlinkSync('v1', join(folder, 'current'));
    symlinkSync('current/numbers.txt', file);
    const { watched } = follow();
    expect(watched.current).toBe(1);
    symlinkSync('v2', join(folder, 'next'));
    renameSync(join(folder, 'next'), join(folder, 'current'));
    await expect.poll(() => watched.current).toBe(2);
  });

  test('that is half written is not taken for the whole', async () => {
    writeFileSync(file, '1');
    const { watched, log } = follow();
    writeFileSync(file, '2x');
    await pause(20);
    writeFileSync(file, '2');
    await expect.poll(() => watched.current).toBe(2);
    expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('of other files in the folder is nothing', async () => {
    writeFileSync(file, '1', { mode: 0o600 });
    const { log } = follow();
    writeFileSync(join(folder, 'other.txt'), 'x');
    await pause(300);
    expect(log.lines).toEqual([]);
  });
});

test('a file that other users can read is warned about at start', () => {
  writeFileSync(file, '1', { mode: 0o644 });
  const { log } = follow();
  expect(log.lines).toMatchObject([
    { level: 'warn', message: expect.stringContaining(`chmod 600 ${file}`) },
  ]);
});

describe('a bad version', () => {
  test('keeps the old contents and is logged, counted and reported until it is valid again', async () => {
    writeFileSync(file, '1');
    const { watched, log, metrics } = follow();
    writeFileSync(file, 'one');
    await expect.poll(() => watched.lastError).toBe(`${file}:1: must be a number`);
    expect(watched.current).toBe(1);
    const errors = log.lines.filter(({ level }) => level === 'error');
    expect(errors).toHaveLength(1);
    expect(errors[0]?.message).toContain('failed to reload numbers');
    expect(await metrics.text()).toContain('millrace_test_numbers_file_failures_total 1');
    expect(await metrics.text()).toContain('millrace_test_numbers_file_fresh 0');
    writeFileSync(file, '2');
    await expect.poll(() => watched.current).toBe(2);
    expect(watched.lastError).toBeUndefined();
    expect(await metrics.text()).toContain('millrace_test_numbers_file_fresh 1');
  });

  test('may be a missing file', async () => {
    writeFileSync(file, '1');
    const { watched } = follow();
    unlinkSync(file);
    await expect.poll(() => watched.lastError).toBe(`${file}: no such file`);
    expect(watched.current).toBe(1);
    writeFileSync(file, '1');
    await expect.poll(() => watched.lastError).toBeUndefined();
  });

  test('at the start is an error of the caller', () => {
    expect(() => follow()).toThrow('no such file');
    writeFileSync(file, 'one');
    expect(() => follow()).toThrow('must be a number');
  });
});

test('SIGHUP reads the file again, changed or not known to be', () => {
  writeFileSync(file, '1');
  const { watched, signals, log } = follow();
  writeFileSync(file, '5');
  signals.emit('SIGHUP');
  expect(watched.current).toBe(5);
  expect(log.lines).toContainEqual({
    level: 'info',
    fields: { file, cause: 'SIGHUP' },
    message: 'numbers reloaded',
  });
  watched.close();
  expect(signals.listenerCount('SIGHUP')).toBe(0);
});

test('a real SIGHUP does not end the process', async () => {
  writeFileSync(file, 'tokens: []');
  const watched = watchTokens({
    file,
    roles: ['reader'],
    clock: systemClock,
    log: listeningLog(),
  });
  closing.push(() => watched.close());
  writeFileSync(file, 'tokens: [{id: a, principal: b, token: opensesame, grants: []}]');
  process.kill(process.pid, 'SIGHUP');
  await expect.poll(() => watched.current.size).toBe(1);
});

test('a file without change events is polled every few seconds', async () => {
  // The target of the link lies in a folder that is not watched.
  const elsewhere = mkdtempSync(join(tmpdir(), 'elsewhere-'));
  closing.push(() => rmSync(elsewhere, { recursive: true }));
  writeFileSync(join(elsewhere, 'numbers.txt'), '1');
  symlinkSync(join(elsewhere, 'numbers.txt'), file);
  const waits: number[] = [];
  const { watched } = follow(file, {
    ...systemClock,
    after: (delayMs, run) => {
      waits.push(delayMs);
      return systemClock.after(Math.min(delayMs, 50), run);
    },
  });
  writeFileSync(join(elsewhere, 'numbers.txt'), '2');
  await expect.poll(() => watched.current).toBe(2);
  expect(waits[0]).toBe(5000);
});

test('clear tokens are warned about at each reading', async () => {
  writeFileSync(file, 'tokens: [{id: a, principal: b, token: opensesame, grants: []}]', {
    mode: 0o600,
  });
  const log = listeningLog();
  const watched = watchTokens({ file, roles: ['reader'], clock: systemClock, log });
  closing.push(() => watched.close());
  expect(log.lines).toEqual([
    {
      level: 'warn',
      fields: { file },
      message: expect.stringContaining('is stored in clear text'),
    },
  ]);
  expect(JSON.stringify(log.lines)).not.toContain('opensesame');
});
