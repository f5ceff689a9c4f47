import { existsSync, readdirSync, realpathSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { silentLog, type Log } from '@millrace/kit/log';
import { systemRandom, type Random } from '@millrace/kit/random';
import { Core } from '../../core/core.js';
import { openFormat } from '../upgrade/format.js';
import { lineageOf, Tables } from '../../storage/file/tables.js';
import {
  isEmptyDirectory,
  makeDirectory,
  pointTo,
  removeStore,
  storeName,
  DirectoryLock,
} from '../../storage/file/directory.js';
import { nodeFiles } from '../../storage/file/files.js';
import { verifyCore } from '../verify/verify.js';
import { applyBackup } from './apply.js';
import { isArchive, planRestore, type RestoreTarget } from './archiver.js';
import { checkBackup, checkSequence, type CheckedBackup } from './check.js';
import { fileParts } from './file.js';
import { readBackup } from './reader.js';

export interface RestoreOptions {
  clock?: Clock;
  random?: Random;
  log?: Log;
  /** Leave out what was committed after this commit number or time. */
  to?: RestoreTarget | undefined;
  onProgress?: ((progress: RestoreProgress) => void) | undefined;
}

export interface RestoreProgress {
  stage: 'check' | 'restore' | 'verify';
  /** Records, and changes of increments, written so far. */
  records: number;
  /** Their total; 0 while it is unknown. */
  of: number;
}

export interface Restored {
  /** The last commit, or batch, that it has of its backups. */
  seq: number;
  /** Records in the restored database. */
  records: number;
  /** The new lineage of the restored database. */
  lineageId: string;
}

/**
 * Creates a database from a full backup and its increments, in order; or from log archives, which
 * are directories, and backups beside them. Everything is read and checked before anything is
 * written. The directory must be empty or absent. CURRENT, which names the store, is written last,
 * so the remains of a killed restore cannot be opened.
 */
export async function restore(
  from: readonly string[],
  directory: string,
  options: RestoreOptions = {},
): Promise<Restored> {
  checkEmpty(directory);
  const fromArchive = from.some(isArchive);
  const files = fromArchive ? await planRestore(from, options.to) : from;
  const backups: CheckedBackup[] = [];
  for (const file of files) {
    options.onProgress?.({ stage: 'check', records: 0, of: 0 });
    const overlapSeq = fromArchive ? backups.at(-1)?.header.seq : undefined;
    backups.push(await checkBackup(file, overlapSeq));
  }
  checkSequence(backups);
  checkTarget(backups, options.to);
  const isNew = !existsSync(directory);
  makeDirectory(directory);
  const home = realpathSync(directory);
  const lock = new DirectoryLock(home, options.clock ?? systemClock);
  // Not number 1: an `open` that finds number 1 without CURRENT would use it.
  const store = storeName(2);
  try {
    // Another restore may have finished first.
    checkEmpty(home, ['LOCK']);
    const restored = await fill(join(home, store), backups, options);
    pointTo(home, store);
    lock.release();
    return restored;
  } catch (error) {
    removeStore(home, store);
    lock.release();
    if (isNew && isEmptyDirectory(home)) rmdirSync(home);
    throw error;
  }
}

async function fill(
  path: string,
  backups: readonly CheckedBackup[],
  options: RestoreOptions,
): Promise<Restored> {
  const tables = new Tables(path);
  const random = options.random ?? systemRandom;
  let core: Core | undefined;
  try {
    const log = options.log ?? silentLog;
    const clock = options.clock ?? systemClock;
    await openFormat(tables, { clock, random, log, files: nodeFiles });
    core = new Core(tables, undefined, {
      clock,
      random,
      log,
      durability: 'strict',
    });
    const seq = await applyAll(core, backups, options);
    options.onProgress?.({ stage: 'verify', records: 0, of: 0 });
    const report = await verifyCore(core);
    if (!report.ok) {
      const [problem] = report.problems;
      throw new Error(`The restored database is damaged: ${problem?.where}: ${problem?.detail}`);
    }
    return { seq, records: report.records, lineageId: lineageOf(tables) };
  } finally {
    if (core) await core.close(new Error('The restore is over'));
    else await tables.close();
  }
}

async function applyAll(
  core: Core,
  backups: readonly CheckedBackup[],
  options: RestoreOptions,
): Promise<number> {
  const of = backups.reduce((sum, { trailer }) => sum + trailer.records, 0);
  let records = 0;
  const onRecords = (count: number) => {
    records += count;
    options.onProgress?.({ stage: 'restore', records, of });
  };
  const { to } = options;
  const isWithin =
    to === undefined
      ? undefined
      : ({ seq, at }: { seq: number; at: number }) =>
          typeof to === 'number' ? seq <= to : at <= to.getTime();
  let startSeq = 0;
  for (const { file, header } of backups) {
    const given = { onRecords, isWithin, startSeq };
    const applied = await applyBackup(core, readBackup(fileParts(file), file), file, given);
    startSeq = applied.seq;
    if (startSeq < header.seq) break;
  }
  return startSeq;
}

function checkTarget(backups: readonly CheckedBackup[], to: RestoreTarget | undefined): void {
  if (to === undefined) return;
  const { file, header } = backups[0]!;
  const isLate = typeof to === 'number' ? header.seq > to : header.createdAt > to;
  if (isLate) {
    throw new UsageError(
      `${file} is at commit ${header.seq}, ${header.createdAt.toISOString()}, which is after the ` +
        'target. Restore from an earlier full backup.',
    );
  }
  const { file: last, header: end } = backups.at(-1)!;
  if (typeof to === 'number' && end.seq < to) {
    throw new UsageError(`${last} ends at commit ${end.seq}; it does not reach commit ${to}.`);
  }
}

function checkEmpty(directory: string, ignored: readonly string[] = []): void {
  if (isEmptyDirectory(directory)) return;
  const found = readdirSync(directory).filter((name) => !ignored.includes(name));
  if (found.length === 0) return;
  const unfinished = found.includes(storeName(2)) && !found.includes('CURRENT');
  throw new UsageError(
    unfinished
      ? `${directory} holds what an unfinished restore left behind: remove it and restore again.`
      : `${directory} is not empty (it has ${found[0]}): restore into a new directory.`,
  );
}
