import { UsageError } from '@millrace/kit/errors';
import type { Random } from '@millrace/kit/random';
import { explainStorageError } from './storage/storage-error.js';
import type { PutRow, Tables } from './storage/tables.js';

/**
 * The version of the file's layout. A newer one is refused; an older one is brought up to date
 * by the migrations below, each from its number to the next.
 */
export const formatVersion = 1;

const migrations: ReadonlyMap<number, (tables: Tables) => Promise<void>> = new Map();

const formatRow = Buffer.from('format');
export const lineageRow = Buffer.from('lineage');

export async function openFormat(tables: Tables, random: Random): Promise<void> {
  const stored = tables.get('meta', formatRow);
  if (!stored) {
    if (tables.get('meta', Buffer.from('state'))) {
      throw new UsageError(`${tables.path} does not say which format it has; it may be damaged.`);
    }
    await write(tables, (put) => {
      put('meta', formatRow, Buffer.from(String(formatVersion)));
      put('meta', lineageRow, Buffer.from(Buffer.from(random.bytes(16)).toString('hex')));
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
    await migrate(tables);
    version++;
    const reached = version;
    await write(tables, (put) => put('meta', formatRow, Buffer.from(String(reached))));
  }
}

async function write(tables: Tables, writes: (put: PutRow) => void): Promise<void> {
  try {
    await tables.commit(writes);
  } catch (error) {
    throw explainStorageError(error, tables.path);
  }
}

/** Names the history that this file belongs to: a restored copy begins another. */
export function lineageOf(tables: Tables): string {
  return tables.get('meta', lineageRow)?.toString() ?? '';
}
