import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { Core } from '../../core/core.js';
import { durableSnapshot } from '../../core/durable-snapshot.js';
import { readRows, type RowReader } from '../../core/read-snapshot.js';
import { openFormat } from '../upgrade/format.js';
import { currentStore, DirectoryLock } from '../../storage/file/directory.js';
import { nodeFiles } from '../../storage/file/files.js';
import { OpenedLog } from '../../storage/store.js';
import { checkStoreFile } from '../../storage/file/store-file.js';
import { Tables } from '../../storage/file/tables.js';
import type { SnapshotView } from '../../storage/views.js';
import { checkCatalog, RecordCheck, Problems, type VerifyReport } from './records.js';
import { ExtraCheck, TableWalker } from './extras.js';
import { LogCheck } from './log.js';

/**
 * Verifies all data of an open database, on one snapshot and a few milliseconds at a time: that
 * each record matches its hash, that keys, indexes and expiry rows match the records exactly, that
 * the log is complete and that the records match it.
 */
export async function verifyCore(core: Core, rows?: VerifyOptions['rows']): Promise<VerifyReport> {
  const started = core.clock.monotonic();
  const { view, state } = await durableSnapshot(core);
  const pin = core.pinLog(state.oldestSeq);
  try {
    const report = await verifySnapshot(core, view, rows);
    return { ...report, elapsedMs: core.clock.monotonic() - started };
  } finally {
    pin.release();
    view.done();
  }
}

export interface VerifyOptions {
  clock?: Clock;
  /** Finds problems in the rows that a program keeps beside the records. */
  rows?: (rows: RowReader) => readonly string[];
}

/** As `verifyCore`, for a database that is not open. Upgrades an older format. */
export async function verify(
  directory: string,
  { rows, ...options }: VerifyOptions = {},
): Promise<VerifyReport> {
  if (!existsSync(directory)) {
    throw new Refusal('NO_SUCH_DIRECTORY', `There is no directory ${directory}.`);
  }
  const clock = options.clock ?? systemClock;
  const home = realpathSync(directory);
  if (!existsSync(join(home, currentStore(home)))) {
    throw new Refusal('NO_DATABASE', `There is no database in ${directory}.`);
  }
  const lock = new DirectoryLock(home, clock);
  let tables: Tables | undefined;
  let opened: OpenedLog | undefined;
  try {
    const path = join(home, currentStore(home));
    checkStoreFile(path, { thorough: true });
    tables = new Tables(path);
    const options = { clock, random: systemRandom, log: silentLog, files: nodeFiles };
    await openFormat(tables, options);
    opened = await OpenedLog.open(tables, { ...options, readOnly: true });
    const core = new Core(tables, opened, { ...options, durability: 'strict' });
    return await verifyCore(core, rows);
  } finally {
    opened?.log.close();
    await tables?.close();
    lock.release();
  }
}

async function verifySnapshot(
  core: Core,
  view: SnapshotView,
  rows: VerifyOptions['rows'],
): Promise<Omit<VerifyReport, 'elapsedMs'>> {
  const problems = new Problems();
  const walker = new TableWalker(core, view);
  const known = checkCatalog(core, view, problems);
  const records = new RecordCheck(core, view, known, problems);
  await walker.walk('records', records.visit);
  await new ExtraCheck(core, view, known, records.expected, problems).run(walker);
  const log = new LogCheck(core, view, known, problems);
  await log.run();
  log.end(records.inLog);
  if (rows) for (const detail of readRows(core, rows)) problems.add('row', '-', detail);
  return {
    ok: problems.count === 0,
    seq: view.seq,
    records: records.records,
    indexEntries: records.indexEntries,
    logEntries: log.entries,
    problems: problems.shown,
    problemCount: problems.count,
  };
}
