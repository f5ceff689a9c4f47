import { commitChain, type CommitRow } from '../../format/record.js';
import { encodeLsn, foldedRow, logDirectoryOf, logNameFor, logRow } from '../../storage/store.js';
import { readUint48 } from '../../format/keys.js';
import { WriteAheadLog, type LogOptions } from '../../storage/log/write-ahead-log.js';
import { PendingWrites } from '../../storage/overlay/overlay.js';
import {
  decodeState,
  encodeState,
  stateRow,
  type PutRow,
  type Tables,
  lineageRow,
} from '../../storage/file/tables.js';
import { dirname } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { formatReleases } from '@millrace/kit/format-releases';
import { explainStorageError } from '../../storage/file/files.js';
import { backUpBeforeUpgrade, refuseUpgrade } from './upgrade-backup.js';

type UpgradeOptions = Pick<LogOptions, 'clock' | 'random' | 'log' | 'files'>;

const maxFrameBytes = 256 * 1024;

/**
 * Upgrades format 1, which version 0.1.0 wrote: its change log is a table of the store, and its
 * state has no `commitEpoch`. The log is written to files. The store refers to them only in the
 * commit that also sets the new version, so a crash in between leaves the directory unchanged.
 */
async function upgradeFormat1(
  tables: Tables,
  options: UpgradeOptions,
): Promise<(put: PutRow) => void> {
  const formerLog = tables.formerTable('log');
  const directory = logDirectoryOf(tables);
  options.files.removeDirectory(directory);
  const stored = tables.get('meta', stateRow);
  const state = decodeState(stored);
  const { oldestSeq, oldestChain, epoch } = state;
  let start = { firstSeq: oldestSeq, chain: oldestChain };
  const log = await WriteAheadLog.open({ ...options, directory }, 0, start, () => undefined);
  let commits: CommitRow[] = [];
  let bytes = 0;
  const flush = async () => {
    if (commits.length === 0) return;
    await log.append({ epoch, commits, writes: new PendingWrites(), isCut: false, start });
    const last = commits.at(-1)!;
    start = { firstSeq: last.seq + 1, chain: commitChain(last.bytes) };
    commits = [];
    bytes = 0;
  };
  try {
    for (const { key, value } of formerLog.rows()) {
      commits.push({ seq: readUint48(key, 2), bytes: value, images: [] });
      bytes += value.length;
      if (bytes >= maxFrameBytes) await flush();
    }
    await flush();
    await log.idle();
    const { lastLsn } = log;
    return (put) => {
      formerLog.drop();
      if (stored) put('meta', stateRow, encodeState({ ...state, commitEpoch: epoch }));
      put('meta', logRow, Buffer.from(logNameFor(tables.path)));
      put('meta', foldedRow, encodeLsn(lastLsn));
    };
  } finally {
    log.close();
  }
}

/**
 * The format version of a data directory. A newer one is refused; an older one is upgraded by the
 * migrations below, each from its number to the next.
 *
 *   1  the change log is a table of the store (version 0.1.0)
 *   2  the write-ahead log is the change log, in its own files
 *
 * Version 1.0.0 no longer reads what 0.1.0 wrote. Remove then: `upgradeFormat1`,
 * `Tables.formerTable`; documents that define their own shapes (see format/codec.ts); commits of
 * leaders without request results (see replica/apply-commit.ts).
 */
export const formatVersion = 2;

type Migration = (tables: Tables, options: UpgradeOptions) => Promise<(put: PutRow) => void>;

/** Each returns the writes for the commit that sets the new version. */
const migrations: ReadonlyMap<number, Migration> = new Map([[1, upgradeFormat1]]);

const formatRow = Buffer.from('format');
const releaseRow = Buffer.from('release');

interface FormatOptions extends UpgradeOptions {
  /** False: refuse data of an older format. */
  upgrade?: boolean | undefined;
}

/** Returns the directory of the backup if the data had to be upgraded. */
export async function openFormat(
  tables: Tables,
  options: FormatOptions,
): Promise<string | undefined> {
  const stored = tables.get('meta', formatRow);
  if (!stored) {
    if (tables.get('meta', Buffer.from('state'))) {
      throw new UsageError(`${tables.path} does not say which format it has; it may be damaged.`);
    }
    await write(tables, (put) => {
      put('meta', formatRow, Buffer.from(String(formatVersion)));
      put('meta', releaseRow, Buffer.from(formatReleases.database));
      put('meta', lineageRow, Buffer.from(Buffer.from(options.random.bytes(16)).toString('hex')));
      put('meta', logRow, Buffer.from(logNameFor(tables.path)));
    });
    return undefined;
  }
  const version = Number(stored.toString());
  if (!(version >= 1)) {
    throw new UsageError(
      `${tables.path} says "${stored}" where its format should be: it is damaged.`,
    );
  }
  if (version > formatVersion) {
    const release = tables.get('meta', releaseRow);
    throw new UsageError(
      `${tables.path} has format ${version}; this Millrace knows formats up to ${formatVersion}. ` +
        `Use a newer Millrace${release ? `: ${release} or later` : ''}.`,
    );
  }
  if (version === formatVersion) return undefined;
  if (options.upgrade === false) refuseUpgrade(tables.path, version, formatVersion);
  const name = `format-${formatVersion}`;
  const backup = await backUpBeforeUpgrade(dirname(tables.path), name, options.log);
  await upgrade(tables, version, options);
  return backup;
}

async function upgrade(tables: Tables, from: number, options: UpgradeOptions): Promise<void> {
  for (let version = from; version < formatVersion; version++) {
    const migrate = migrations.get(version);
    if (!migrate) throw new UsageError(`${tables.path} has the unknown format ${version}.`);
    const also = await migrate(tables, options);
    await write(tables, (put) => {
      put('meta', formatRow, Buffer.from(String(version + 1)));
      put('meta', releaseRow, Buffer.from(formatReleases.database));
      also(put);
    });
    tables.refresh();
  }
}

async function write(tables: Tables, writes: (put: PutRow) => void): Promise<void> {
  try {
    await tables.commit(writes);
  } catch (error) {
    throw explainStorageError(error, tables.path);
  }
}
