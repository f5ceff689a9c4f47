import { UsageError } from '@millrace/kit/errors';
import { moveLogTable, type UpgradeOptions } from './format-1.js';
import { logNameFor, logRow } from './storage/log/open-log.js';
import { explainStorageError } from './storage/storage-error.js';
import type { PutRow, Tables } from './storage/tables.js';

/**
 * The version of the layout of a data directory. A newer one is refused; an older one is brought
 * up to date by the migrations below, each from its number to the next.
 *
 *   1  the change log is a table of the store
 *   2  the write-ahead log is the change log, in files of its own
 */
export const formatVersion = 2;

type Migration = (tables: Tables, options: UpgradeOptions) => Promise<(put: PutRow) => void>;

/** Each returns what to write together with the new version. */
const migrations: ReadonlyMap<number, Migration> = new Map([[1, moveLogTable]]);

const formatRow = Buffer.from('format');
export const lineageRow = Buffer.from('lineage');

export async function openFormat(tables: Tables, options: UpgradeOptions): Promise<void> {
  const stored = tables.get('meta', formatRow);
  if (!stored) {
    if (tables.get('meta', Buffer.from('state'))) {
      throw new UsageError(`${tables.path} does not say which format it has; it may be damaged.`);
    }
    await write(tables, (put) => {
      put('meta', formatRow, Buffer.from(String(formatVersion)));
      put('meta', lineageRow, Buffer.from(Buffer.from(options.random.bytes(16)).toString('hex')));
      put('meta', logRow, Buffer.from(logNameFor(tables.path)));
    });
    return;
  }
  let version = Number(stored.toString());
  if (!(version >= 1)) {
    throw new UsageError(
      `${tables.path} says "${stored}" where its format should be: it is damaged.`,
    );
  }
  if (version > formatVersion) {
    throw new UsageError(
      `${tables.path} has format ${version}; this Millrace knows formats up to ${formatVersion}. ` +
        'Use a newer Millrace.',
    );
  }
  while (version < formatVersion) {
    const migrate = migrations.get(version);
    if (!migrate) throw new UsageError(`${tables.path} has the unknown format ${version}.`);
    const also = await migrate(tables, options);
    version++;
    const reached = version;
    await write(tables, (put) => {
      put('meta', formatRow, Buffer.from(String(reached)));
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

/** Identifies the history that this file belongs to: a restored copy begins another. */
export function lineageOf(tables: Tables): string {
  return tables.get('meta', lineageRow)?.toString() ?? '';
}
