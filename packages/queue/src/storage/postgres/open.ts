import type { Clock } from '@millrace/kit/clock';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { StorageUnavailable } from '../port/task-store.js';
import { Client, clientConfig, Connections } from './connections.js';
import { DatabaseClock, keepSecret, Notifications, readSecret } from './notifications.js';
import { migrate } from './migrations.js';
import { PostgresStore } from './postgres-store.js';
import { markOf, refuseOthers, transferSessions } from './transfer-end.js';

export interface PostgresStoreOptions {
  clock: Clock;
  random: Random;
  log: Log;
  connections?: number | undefined;
  statementTimeoutMs?: number | undefined;
  /** Whether the database supports SKIP LOCKED; detected if absent. */
  canSkipLocked?: boolean | undefined;
  /** False: refuse tables of an older version. */
  upgrade?: boolean | undefined;
  /** To move tasks in or out, also after an interruption. */
  forTransfer?: boolean | undefined;
}

const keyBytes = 32;
/** Transfers have large steps, and nobody waits for a result. */
const transferTimeoutMs = 120_000;
const readEncoding = { name: '', text: 'SHOW server_encoding' };
/** Servers start after the upgrade, however long it takes. */
const migrationTimeoutMs = 3_600_000;
const probeSkip = {
  name: '',
  text: 'SELECT one FROM millrace.schema_version WHERE one FOR UPDATE SKIP LOCKED',
};

/** Opens the store in a PostgreSQL database and creates its tables if needed. */
export async function openPostgresStore(
  url: string,
  options: PostgresStoreOptions,
): Promise<PostgresStore> {
  const { clock, random, log, forTransfer } = options;
  const sessionName = forTransfer ? transferSessions : undefined;
  const connect = (statementTimeoutMs: number | undefined) => {
    return new Connections(url, { ...options, statementTimeoutMs, sessionName });
  };
  checkUrl(url);
  const connections = connect(forTransfer ? transferTimeoutMs : options.statementTimeoutMs);
  try {
    await refuseEncoding(connections);
    await migrate(connections, () => connect(migrationTimeoutMs), options.upgrade);
    if (forTransfer) await refuseOthers(connections, clock);
    else await refusePart(connections);
    const instance = random.ulid(clock.now());
    const store = new PostgresStore({
      connections,
      instance,
      canSkip: options.canSkipLocked ?? (await canSkipLocked(connections)),
      cursorKey: await cursorKeyOf(connections, random),
      clock: new DatabaseClock(clock, log),
      random,
      log,
      notifications: (listeners) =>
        new Notifications({ url, sessionName, clock, log, instance, ...listeners }),
    });
    await store.start();
    return store;
  } catch (error) {
    await connections.close();
    throw unusable(error, forTransfer === true);
  }
}

/** Other encodings cannot store every payload header and error text. */
async function refuseEncoding(connections: Connections): Promise<void> {
  const [row] = await connections.query<{ server_encoding: string }>(readEncoding);
  if (row?.server_encoding === 'UTF8') return;
  throw new UsageError(
    `storage: the encoding of this database is ${row?.server_encoding}. ` +
      "Make one for the queue: CREATE DATABASE queue ENCODING 'UTF8' TEMPLATE template0.",
  );
}

/**
 * Wrong settings end the start. A server waits for a PostgreSQL that does not answer; a transfer
 * fails.
 */
function unusable(error: unknown, forTransfer: boolean): unknown {
  const problem = settingsProblem(error instanceof StorageUnavailable ? error.cause : error);
  if (problem) return new UsageError(`storage: ${problem}`);
  if (!(error instanceof StorageUnavailable) || !forTransfer) return error;
  return new UsageError(`storage: ${error.message}. Is it running, and is the URL right?`);
}

/** Refuses a database with an unfinished transfer. */
async function refusePart(connections: Connections): Promise<void> {
  const mark = await markOf(connections);
  if (!mark || mark.finished) return;
  throw new UsageError(
    'storage: an unfinished transfer of tasks is in this database. ' +
      'Run `ctl queue migrate` again to resume it.',
  );
}

/** The store works without it, but waits more. */
async function canSkipLocked(connections: Connections): Promise<boolean> {
  try {
    await connections.query(probeSkip);
    return true;
  } catch (error) {
    if (error instanceof StorageUnavailable) throw error;
    return false;
  }
}

/** All servers sign cursors with the same key. */
async function cursorKeyOf(connections: Connections, random: Random): Promise<Uint8Array> {
  const fresh = Buffer.from(random.bytes(keyBytes)).toString('hex');
  await connections.query(keepSecret, ['cursor_key', fresh]);
  const [row] = await connections.query<{ value: string }>(readSecret, ['cursor_key']);
  return Buffer.from(row!.value, 'hex');
}

/** The driver silently treats every other value as verify-full. */
const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

/**
 * Refuses an invalid database URL. The URL is never shown: it may contain a password in any part.
 */
export function checkUrl(url: string): void {
  const [, sslMode] = /[?&]sslmode=([^&#]*)/.exec(url) ?? [];
  if (sslMode !== undefined && !sslModes.includes(sslMode)) {
    throw new UsageError(`storage: sslmode must be one of ${sslModes.join(', ')}.`);
  }
  try {
    // Parses the URL and reads the files that it names; does not connect.
    void new Client(clientConfig(url, {}));
  } catch (error) {
    const isFile = error instanceof Error && 'syscall' in error;
    if (isFile) throw new UsageError(`storage: ${messageOf(error)}.`);
    throw new UsageError(
      'storage: this is not a PostgreSQL URL such as postgres://user@host/db. Encode ' +
        '/ # ? @ % in a password as %2F %23 %3F %40 %25, or set PGPASSWORD.',
    );
  }
}

/** Wrong user, password, database or privilege: PostgreSQL describes it. */
const refusedCodes = /^(?:3D000|42501|3F000|28\w{3})$/;
const untrustedCodes =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+|ERR_TLS_\w+)$/;
const noTls = /does not support SSL connections/;

/** Why the settings cannot work; undefined if the error has another cause. */
export function settingsProblem(error: unknown): string | undefined {
  const code = systemCode(error);
  const message = messageOf(error);
  if (refusedCodes.test(code)) return `PostgreSQL says: ${message}.${hintFor(message)}`;
  if (untrustedCodes.test(code)) {
    return (
      `the certificate of PostgreSQL is not trusted: ${message}. Name its authority with ` +
      'sslrootcert=<file> in the URL, or use sslmode=no-verify.'
    );
  }
  if (!noTls.test(message)) return undefined;
  return 'the URL requires TLS, but PostgreSQL does not offer it: enable it there, or use sslmode=disable.';
}

function hintFor(message: string): string {
  if (!message.startsWith('permission denied for database')) return '';
  return ' Let its owner run CREATE SCHEMA millrace AUTHORIZATION <the role of the URL>.';
}
