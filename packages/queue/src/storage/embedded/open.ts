import {
  backUpBeforeUpgrade,
  type Database,
  type LogArchiveOptions,
  open,
  refuseUpgrade,
} from '@millrace/engine';
import type { Clock } from '@millrace/kit/clock';
import { UsageError } from '@millrace/kit/errors';
import { formatReleases } from '@millrace/kit/format-releases';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { join } from 'node:path';
import { EmbeddedStore } from './embedded-store.js';
import { kinds, nameKey } from './keys.js';
import { markListed } from './upkeep.js';

export interface EmbeddedStoreOptions {
  clock: Clock;
  random: Random;
  log: Log;
  /** False: refuse data of an older version. */
  upgrade?: boolean | undefined;
  /** Archives the log to a directory, for point-in-time restore. */
  logArchive?: LogArchiveOptions | undefined;
}

/** Version of the row layout in keys.ts. */
const formatVersion = 2;
/** Data of this version is upgraded while the server runs. */
const oldestVersion = 1;
const formatKey = nameKey(kinds.meta, 'format');
const releaseKey = nameKey(kinds.meta, 'release');

/** Opens the store in a directory, which is created if needed. One process at a time. */
export async function openEmbeddedStore(
  directory: string,
  options: EmbeddedStoreOptions,
): Promise<EmbeddedStore> {
  let database = await open(directory, options);
  try {
    const version = formatOf(database);
    checkFormat(database, version, options);
    if (version !== formatVersion) {
      if (version !== undefined && !database.upgradeBackup) {
        await database.close();
        await backUpBeforeUpgrade(database.directory, `queue-format-${formatVersion}`, options.log);
        database = await open(directory, options);
      }
      await writeFormat(database, version === undefined);
    }
    return await storeOf(database, options);
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** A store in a database that its owner opened and closes. */
export async function shareDatabase(
  database: Database,
  options: EmbeddedStoreOptions,
): Promise<EmbeddedStore> {
  const version = formatOf(database);
  checkFormat(database, version, options);
  if (version !== formatVersion) await writeFormat(database, version === undefined);
  return storeOf(database, { ...options, isShared: true });
}

async function storeOf(
  database: Database,
  { random, log, isShared = false }: EmbeddedStoreOptions & { isShared?: boolean },
): Promise<EmbeddedStore> {
  const store = new EmbeddedStore(database, random, isShared);
  await store.finishQueueDeletions();
  store.listOldTasks(log);
  return store;
}

export function embeddedStoreIn(dataDirectory: string): string {
  return join(dataDirectory, 'queue');
}

/** Directory of an unfinished transfer into a data directory. */
export function embeddedPartIn(dataDirectory: string): string {
  return `${embeddedStoreIn(dataDirectory)}.part`;
}

/** Undefined in a new store. */
function formatOf(database: Database): number | undefined {
  const stored = database.readRows((rows) => rows.get(formatKey));
  return stored && Number(stored.toString());
}

function checkFormat(
  database: Database,
  version: number | undefined,
  { upgrade }: EmbeddedStoreOptions,
): void {
  const { directory } = database;
  if (version === undefined || version === formatVersion) return;
  if (version > formatVersion) {
    const release = database.readRows((rows) => rows.get(releaseKey));
    throw new UsageError(
      `${directory} has queue format ${version}; this Millrace supports formats up to ` +
        `${formatVersion}. Use a newer Millrace${release ? `: ${release} or later` : ''}.`,
    );
  }
  if (!(version >= oldestVersion)) {
    throw new UsageError(`${directory} has no valid queue format: it is damaged.`);
  }
  if (upgrade === false) refuseUpgrade(directory, version, formatVersion);
}

async function writeFormat(database: Database, isNew: boolean): Promise<void> {
  await database.transact(({ rows }) => {
    rows.put(formatKey, Buffer.from(String(formatVersion)));
    rows.put(releaseKey, Buffer.from(formatReleases.queueRows));
    if (isNew) markListed(rows);
  });
}
