import { join } from 'node:path';
import { silentLog } from '@millrace/kit/log';
import { seededRandom } from '@millrace/kit/random';
import { describe, expect, test } from 'vitest';
import { emptyHash } from '../../value/bytes.js';
import { ManualClock } from '../../../test/manual-clock.test-support.js';
import { useScratch } from '../../../test/scratch.test-support.js';
import { nodeFiles, type FileLayer } from '../file/files.js';
import { PendingWrites } from '../overlay/overlay.js';
import { frameRows } from './segment.js';
import { WriteAheadLog } from './write-ahead-log.js';

const scratch = useScratch();
const start = { firstSeq: 1, chain: emptyHash };
const segmentBytes = 4_096;

interface Opened {
  log: WriteAheadLog;
  frames: { lsn: number; rows: string[] }[];
}

async function openLog(directory: string, foldedLsn = 0, readOnly = false): Promise<Opened> {
  const frames: Opened['frames'] = [];
  const log = await WriteAheadLog.open(
    {
      directory,
      files: nodeFiles,
      clock: new ManualClock(),
      random: seededRandom(1),
      log: silentLog,
      segmentBytes,
      readOnly,
    },
    foldedLsn,
    start,
    (frame, lsn) => {
      const rows = Array.from(frameRows(frame), ({ table, key, value }) =>
        [table, key, value ?? 'removed'].join(' '),
      );
      frames.push({ lsn, rows });
    },
  );
  return { log, frames };
}

/** A log whose syncs take as long as `disk` says, and which of them blocked the event loop. */
async function openTimed(disk: { syncMs: number }) {
  const clock = new ManualClock();
  const blocked: boolean[] = [];
  const open: FileLayer['open'] = (path, mode) => {
    const file = nodeFiles.open(path, mode);
    // Not those that allocate ahead, which have a descriptor of their own.
    if (mode !== 'create') return file;
    const sync = file.sync.bind(file);
    file.sync = (mayBlock = false) => {
      blocked.push(mayBlock);
      clock.advance(disk.syncMs);
      return sync(mayBlock);
    };
    return file;
  };
  const log = await WriteAheadLog.open(
    {
      directory: scratch.directory(),
      files: { ...nodeFiles, open },
      clock,
      random: seededRandom(1),
      log: silentLog,
    },
    0,
    start,
    () => undefined,
  );
  let seq = 0;
  /** Appends frames, and returns which syncs blocked. */
  const appended = async (count: number, isAlone: boolean) => {
    await log.idle();
    blocked.length = 0;
    for (let i = 0; i < count; i++) await append(log, ++seq, 300, false, isAlone);
    return blocked.slice(0, count);
  };
  return { log, appended };
}

/** One frame with one commit, which is as long as it says. */
async function append(
  log: WriteAheadLog,
  seq: number,
  length = 300,
  isCut = false,
  isAlone = false,
): Promise<void> {
  const image = Buffer.alloc(length, seq);
  const bytes = Buffer.concat([Buffer.from(`commit ${seq} `), image]);
  const images = [image, bytes.length - length];
  const writes = new PendingWrites();
  writes.set('records', Buffer.from(`k${seq}`), image);
  writes.set('keys', Buffer.from('gone'), undefined);
  writes.set('rows', Buffer.from('r'), Buffer.from(`row ${seq}`));
  const commits = [{ seq, bytes, images }];
  const entry = { epoch: 1, commits, writes, isCut, isAlone };
  await log.append({ ...entry, start: { ...start, firstSeq: seq } });
}

const textOf = (row: Buffer | undefined) =>
  row?.toString('latin1').split(' ').slice(0, 2).join(' ');

describe('write-ahead log', () => {
  test('gives back the frames after the one that the store has', async () => {
    const directory = join(scratch.directory(), 'log');
    const first = await openLog(directory);
    expect(first.frames).toEqual([]);
    for (let seq = 1; seq <= 40; seq++) await append(first.log, seq);
    await first.log.idle();
    first.log.close();
    const { log, frames } = await openLog(directory, 25);
    expect(frames.map(({ lsn }) => lsn)).toEqual(Array.from({ length: 15 }, (_, i) => 26 + i));
    expect(frames[0]!.rows).toEqual([
      `records k26 ${Buffer.alloc(300, 26).toString()}`,
      'keys gone removed',
      'rows r row 26',
    ]);
    expect(log.lastLsn).toBe(40);
    log.close();
  });

  test('finds commits by their number, in any order, in memory and in the files', async () => {
    const directory = join(scratch.directory(), 'log');
    const { log } = await openLog(directory);
    for (let seq = 1; seq <= 60; seq++) await append(log, seq, seq % 7 === 0 ? 9_000 : 200);
    await log.idle();
    const again = await openLog(directory, 60, true);
    for (const each of [log, again.log]) {
      expect(each.segments.length).toBeGreaterThan(5);
      for (let seq = 1; seq <= 60; seq++) expect(textOf(each.read(seq))).toBe(`commit ${seq}`);
      for (const seq of [60, 1, 35, 36, 34]) expect(textOf(each.read(seq))).toBe(`commit ${seq}`);
      expect(each.read(61)).toBeUndefined();
      expect(each.bytesFrom(1)).toBeGreaterThan(each.bytesFrom(30));
      each.close();
    }
  });

  test('reuses the files of segments that nobody needs, and keeps those not folded', async () => {
    const directory = join(scratch.directory(), 'log');
    const { log } = await openLog(directory);
    for (let seq = 1; seq <= 50; seq++) await append(log, seq);
    const before = log.segments.length;
    expect(log.drop(30, 0)).toBe(0);
    expect(log.drop(30, 12)).toBe(1);
    expect(log.drop(30, 50)).toBeGreaterThan(1);
    expect(log.segments[0]!.header.firstSeq).toBeLessThanOrEqual(30);
    expect(log.segments[1]!.header.firstSeq).toBeGreaterThan(30);
    for (let seq = 51; seq <= 90; seq++) await append(log, seq);
    expect(log.segments.length).toBeGreaterThan(before - 3);
    for (let seq = 30; seq <= 90; seq++) expect(textOf(log.read(seq))).toBe(`commit ${seq}`);
    await log.idle();
    log.close();
    const again = await openLog(directory, 50);
    expect(again.frames.map(({ lsn }) => lsn)).toEqual(
      Array.from({ length: 40 }, (_, i) => 51 + i),
    );
    for (let seq = 30; seq <= 90; seq++) expect(textOf(again.log.read(seq))).toBe(`commit ${seq}`);
    again.log.close();
  });

  test('gives the commits of the history that replaced another', async () => {
    const directory = join(scratch.directory(), 'log');
    const { log } = await openLog(directory);
    for (let seq = 1; seq <= 10; seq++) await append(log, seq, 100);
    await append(log, 6, 50, true);
    await append(log, 7, 60);
    await log.idle();
    const again = await openLog(directory, 12, true);
    for (const each of [log, again.log]) {
      const lengths = [5, 6, 7, 8].map((seq) => each.read(seq)?.length);
      expect(lengths).toEqual([109, 59, 69, undefined]);
      each.close();
    }
  });

  test('a sync that is waited for alone blocks while syncs are fast, and only then', async () => {
    const disk = { syncMs: 0.1 };
    const { log, appended } = await openTimed(disk);
    expect((await appended(40, true)).slice(-10)).toEqual(Array(10).fill(true));
    expect(await appended(10, false)).toEqual(Array(10).fill(false));
    disk.syncMs = 10;
    expect(await appended(30, true)).toEqual([true, ...Array(29).fill(false)]);
    disk.syncMs = 0.1;
    expect((await appended(100, true)).slice(-10)).toEqual(Array(10).fill(true));
    log.close();
  });

  test('cuts off a torn frame and writes over it', async () => {
    const directory = join(scratch.directory(), 'log');
    const { log } = await openLog(directory);
    for (let seq = 1; seq <= 3; seq++) await append(log, seq);
    await log.idle();
    const segment = log.segments.at(-1)!;
    const end = segment.end;
    await append(log, 4);
    // Half of the last frame never reached the disk.
    await segment.file.write(Buffer.alloc(100), end + 200);
    await log.idle();
    log.close();
    const { log: again, frames } = await openLog(directory);
    expect(frames.map(({ lsn }) => lsn)).toEqual([1, 2, 3]);
    await append(again, 4, 20);
    await again.idle();
    again.close();
    const last = await openLog(directory);
    expect(last.frames.map(({ lsn }) => lsn)).toEqual([1, 2, 3, 4]);
    last.log.close();
  });

  test('refuses a damaged frame with sound ones behind it', async () => {
    const directory = join(scratch.directory(), 'log');
    const { log } = await openLog(directory);
    for (let seq = 1; seq <= 4; seq++) await append(log, seq);
    await log.idle();
    await log.segments[0]!.file.write(Buffer.from('damage'), 700);
    log.close();
    await expect(openLog(directory)).rejects.toThrow(
      /is incomplete: the frame at byte 512.*restore/,
    );
  });

  test('refuses a log that lacks a file, or ends before the store does', async () => {
    const directory = join(scratch.directory(), 'log');
    const { log } = await openLog(directory);
    for (let seq = 1; seq <= 30; seq++) await append(log, seq);
    await log.idle();
    const [, second] = log.segments;
    log.close();
    await expect(openLog(directory, 31)).rejects.toThrow('ends at frame 30, the store is at 31');
    nodeFiles.remove(second!.path);
    await expect(openLog(directory)).rejects.toThrow('the file is missing');
    nodeFiles.removeDirectory(directory);
    await expect(openLog(directory, 30)).rejects.toThrow('its files are missing');
  });
});
