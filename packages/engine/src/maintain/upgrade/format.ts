import { dirname } from 'node:path';
import { UsageError } from '@millrace/kit/errors';
import { formatReleases } from '@millrace/kit/format-releases';
import { upgradeFormat1, type UpgradeOptions } from './format-1.js';
import { logNameFor, logRow } from '../../storage/open-log.js';
import { explainStorageError } from '../../storage/file/storage-error.js';
import { lineageRow } from '../../storage/file/state.js';
import type { PutRow, Tables } from '../../storage/file/tables.js';
import { backUpBeforeUpgrade, refuseUpgrade } from './upgrade-backup.js';

/**
 * The format version of a data directory. A newer one is refused; an older one is upgraded by the
 * migrations below, each from its number to the next.
 *
 *   1  the change log is a table of the store (version 0.1.0)
 *   2  the write-ahead log is the change log, in its own files
 *
 * Version 1.0.0 no longer reads what 0.1.0 wrote. Remove then: format-1.ts and
 * `Tables.formerTable`; documents that define their own shapes (see format/codec.ts); commits of
 * leaders without request results (see replica/apply-commit.ts).
 */
export const formatVersion = 2;

type Migration = (tables: Tables, options: UpgradeOptions) => Promise<(put: PutRow) => void>;

/** Each returns the writes for the commit that sets the new version. */
const migrations: ReadonlyMap<number, Migration> = new Map([[1, upgradeFormat1]]);

const formatRow = Buffer.from('format');
const releaseRow = Buffer.from('release');

export interface FormatOptions extends UpgradeOptions {
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
