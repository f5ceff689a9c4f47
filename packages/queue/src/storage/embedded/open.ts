import { join } from 'node:path';
import { open, type Database } from '@millrace/db';
import type { Clock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { EmbeddedStore } from './embedded-store.js';
import { kinds, nameKey } from './keys.js';
import { markListed } from './list-old-tasks.js';

export interface EmbeddedStoreOptions {
  clock: Clock;
  random: Random;
  log: Log;
}

/** Version of the row layout in keys.ts. */
const formatVersion = 2;
/** Data of this version is upgraded while the server runs. */
const oldestVersion = 1;

/** Opens the store in a directory, which is created if needed. One process at a time. */
export async function openEmbeddedStore(
  directory: string,
  options: EmbeddedStoreOptions,
): Promise<EmbeddedStore> {
  const database = await open(directory, options);
  try {
    await checkFormat(database, directory);
    const store = new EmbeddedStore(database, options.random);
    await store.finishQueueDeletions();
    store.listOldTasks(options.log);
    return store;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Directory of the store in a data directory. */
export function embeddedStoreIn(dataDirectory: string): string {
  return join(dataDirectory, 'queue');
}

/** Directory of an unfinished transfer into a data directory. */
export function embeddedPartIn(dataDirectory: string): string {
  return `${embeddedStoreIn(dataDirectory)}.part`;
}

async function checkFormat(database: Database, directory: string): Promise<void> {
  const key = nameKey(kinds.meta, 'format');
  const stored = database.readRows((rows) => rows.get(key));
  const current = Buffer.from(String(formatVersion));
  if (!stored) {
    await database.transact(({ rows }) => {
      rows.put(key, current);
      markListed(rows);
    });
    return;
  }
  const version = Number(stored.toString());
  if (version === formatVersion) return;
  if (version >= oldestVersion && version < formatVersion) {
    await database.transact(({ rows }) => rows.put(key, current));
    return;
  }
  if (version > formatVersion) {
    throw new UsageError(
      `${directory} has queue format ${version}; this Millrace supports formats up to ` +
        `${formatVersion}. Use a newer Millrace.`,
    );
  }
  throw new UsageError(`${directory} says "${stored}" where its format should be: it is damaged.`);
}
