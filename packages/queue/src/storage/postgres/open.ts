import type { Clock } from '@millrace/kit/clock';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { StorageUnavailable } from '../task-store.js';
import { ClockShift } from './clock-shift.js';
import { Connections } from './connections.js';
import { DatabaseTimeStore } from './database-time-store.js';
import { Hints } from './hints.js';
import { migrate } from './migrations.js';
import { PostgresStore } from './postgres-store.js';
import { markOf } from './transfer/postgres-end.js';
import { keepSecret, readSecret } from './statements/instances.sql.js';

export interface PostgresStoreOptions {
  clock: Clock;
  random: Random;
  log: Log;
  connections?: number | undefined;
  statementTimeoutMs?: number | undefined;
  /** Found out unless told: whether the engine knows SKIP LOCKED. */
  canSkipLocked?: boolean | undefined;
  /** To move tasks in or out, also where that was broken off. */
  forTransfer?: boolean | undefined;
}

const keyBytes = 32;
/** Nobody waits for an answer there, and steps are large. */
const transferTimeoutMs = 120_000;
const probeSkip = {
  name: '',
  text: 'SELECT one FROM millrace.schema_version WHERE one FOR UPDATE SKIP LOCKED',
};

/** Opens the store in a PostgreSQL database, whose tables are made when they are not there. */
export async function openPostgresStore(
  url: string,
  options: PostgresStoreOptions,
): Promise<DatabaseTimeStore> {
  const { clock, random, log } = options;
  const connections = makeConnections(url, options);
  try {
    await migrate(connections);
    if (!options.forTransfer) await refusePart(connections);
    const shift = new ClockShift(clock, log);
    const instance = random.ulid(clock.now());
    const store = new PostgresStore({
      connections,
      instance,
      canSkip: options.canSkipLocked ?? (await canSkipLocked(connections)),
      shift,
      cursorKey: await cursorKeyOf(connections, random),
      clock,
      random,
      log,
      hints: (heard) => new Hints({ url, clock, log, instance, heard }),
    });
    await store.start();
    return new DatabaseTimeStore(store, shift);
  } catch (error) {
    await connections.close();
    throw unusable(error, options.forTransfer === true);
  }
}

function makeConnections(url: string, options: PostgresStoreOptions): Connections {
  try {
    const statementTimeoutMs = options.forTransfer ? transferTimeoutMs : options.statementTimeoutMs;
    return new Connections(url, { ...options, statementTimeoutMs });
  } catch {
    // Not shown: there may be a password in it.
    throw new UsageError(
      'storage: this is no URL of a PostgreSQL such as postgres://user@host/db.',
    );
  }
}

/**
 * A wrong name or password is a mistake in the settings; so is a database that is not there. A
 * server waits for a PostgreSQL that does not answer, a person who moves tasks is told.
 */
function unusable(error: unknown, forTransfer: boolean): unknown {
  const said = error instanceof StorageUnavailable ? error.cause : error;
  if (/^(?:3D000|42501|3F000|28\w{3})$/.test(systemCode(said))) {
    return new UsageError(`storage: PostgreSQL says: ${messageOf(said)}.`);
  }
  if (!(error instanceof StorageUnavailable) || !forTransfer) return error;
  return new UsageError(`storage: ${error.message}. Is it running, and is the URL right?`);
}

/** Half of the tasks are not the tasks. */
async function refusePart(connections: Connections): Promise<void> {
  const mark = await markOf(connections);
  if (!mark || mark.finished) return;
  throw new UsageError(
    'storage: tasks were being moved into this database, and not all of them are there. ' +
      'Run `ctl queue migrate` again as before: it goes on where it was.',
  );
}

/** Older and other engines may not know it; the store is right without, and waits a little more. */
async function canSkipLocked(connections: Connections): Promise<boolean> {
  try {
    await connections.ask(probeSkip);
    return true;
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    return false;
  }
}

/** A cursor that one server gave out is good at every other. */
async function cursorKeyOf(connections: Connections, random: Random): Promise<Uint8Array> {
  const fresh = Buffer.from(random.bytes(keyBytes)).toString('hex');
  await connections.ask(keepSecret, ['cursor_key', fresh]);
  const [row] = await connections.ask<{ value: string }>(readSecret, ['cursor_key']);
  return Buffer.from(row!.value, 'hex');
}
