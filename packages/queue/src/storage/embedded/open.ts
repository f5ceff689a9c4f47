import { join } from 'node:path';
import { open, type Database } from '@millrace/db';
import type { Clock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { EmbeddedStore } from './embedded-store.js';
import { kinds, nameKey } from './keys.js';

export interface EmbeddedStoreOptions {
  clock: Clock;
  random: Random;
  log: Log;
}

/** The layout of the rows, as told in keys.ts. */
const formatVersion = 1;

/** Opens the store in a directory, which is made when it is not there. One process at a time. */
export async function openEmbeddedStore(
  directory: string,
  options: EmbeddedStoreOptions,
): Promise<EmbeddedStore> {
  const database = await open(directory, options);
  try {
    await checkFormat(database, directory);
    const store = new EmbeddedStore(database, options.random);
    await store.finishQueueDeletions();
    return store;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Where the store of a data directory lies. */
export function embeddedStoreIn(dataDirectory: string): string {
  return join(dataDirectory, 'queue');
}

/** Where tasks that are moved into a data directory lie until all of them are there. */
export function embeddedPartIn(dataDirectory: string): string {
  return `${embeddedStoreIn(dataDirectory)}.part`;
}

async function checkFormat(database: Database, directory: string): Promise<void> {
  const key = nameKey(kinds.meta, 'format');
  const stored = database.readRows((rows) => rows.get(key));
  if (!stored) {
    await database.transact(({ rows }) => rows.put(key, Buffer.from(String(formatVersion))));
    return;
  }
  const version = Number(stored.toString());
  if (version === formatVersion) return;
  if (version > formatVersion) {
    throw new UsageError(
      `${directory} has queue format ${version}; this Millrace knows formats up to ` +
        `${formatVersion}. Use a newer Millrace.`,
    );
  }
  throw new UsageError(`${directory} says "${stored}" where its format should be: it is damaged.`);
}
