import { Refusal, UsageError } from '@millrace/kit/errors';
import { formatReleases } from '@millrace/kit/format-releases';
import { type Connections, isAway, isConflict, type Transaction } from './connections.js';
import { statement } from './statement.js';
import { tables, tuning } from './schema.sql.js';
import { functions, openSchema } from './submit.sql.js';
import { upgrades } from './upgrades.sql.js';

export const schemaVersion = 16;
/** Version of the tables of 0.1.0, the oldest that can be upgraded. */
const oldestVersion = 5;

const createSchema = 'CREATE SCHEMA IF NOT EXISTS millrace';
const createVersion = `CREATE TABLE IF NOT EXISTS millrace.schema_version (
  one boolean PRIMARY KEY,
  version integer NOT NULL
)`;
const firstVersion = `INSERT INTO millrace.schema_version (one, version) VALUES (true, 0)
  ON CONFLICT (one) DO NOTHING`;
const readVersion = statement(
  'read_version',
  `SELECT version, obj_description('millrace.schema_version'::regclass, 'pg_class') AS release
   FROM millrace.schema_version WHERE one`,
);
const lockVersion = `SELECT version FROM millrace.schema_version WHERE one FOR UPDATE`;
// A column would need a lock that conflicts with servers that start at the same time.
const writeRelease = `COMMENT ON TABLE millrace.schema_version IS '${formatReleases.queueTables}'`;
const writeVersion = 'UPDATE millrace.schema_version SET version = $1 WHERE one';
const isThere = `SELECT count(*) AS tables FROM information_schema.tables
  WHERE table_schema = 'millrace' AND table_name = 'schema_version'`;

// information_schema only shows schemas that the role owns.
const isSchemaThere = `SELECT count(*) AS schemas FROM pg_catalog.pg_namespace
  WHERE nspname = 'millrace'`;

const plain = (text: string) => ({ name: '', text });

/**
 * Upgrades the schema to this version. Several servers may start at once: the row of the version is
 * the lock. A newer schema is refused.
 *
 * `patient`: connections with a long statement timeout, for large tables.
 */
export async function migrate(
  connections: Connections,
  patient: () => Connections,
  mayUpgrade = true,
): Promise<void> {
  const { version, release } = await versionOf(connections);
  refuseOther(version, release);
  if (version === schemaVersion) return;
  if (version > 0 && !mayUpgrade) refuseOlder(version);
  // Concurrent CREATE IF NOT EXISTS may fail.
  if (!(await hasSchema(connections))) {
    await upToThreeTimes(() => connections.query(plain(createSchema)));
  }
  await upToThreeTimes(() => connections.query(plain(createVersion)));
  await connections.query(plain(firstVersion));
  const slow = patient();
  try {
    await slow.transact(upgrade);
  } finally {
    await slow.close();
  }
}

async function upgrade(transaction: Transaction): Promise<void> {
  const [row] = await transaction.query<{ version: number }>(plain(lockVersion));
  const { version } = row!;
  refuseOther(version);
  if (version === schemaVersion) return;
  if (version === 0) for (const text of tables) await transaction.query(plain(text));
  for (let next = version + 1; version > 0 && next <= schemaVersion; next++) {
    for (const text of upgrades[next]!) await transaction.query(plain(text));
  }
  for (const text of functions) await transaction.query(plain(text));
  for (const text of [...tuning, openSchema]) await tune(transaction, text);
  await transaction.query(plain(writeVersion), [schemaVersion]);
  await tune(transaction, writeRelease);
}

/** Rolls back only the statement that was refused. */
async function tune(transaction: Transaction, text: string): Promise<void> {
  await transaction.query(plain('SAVEPOINT tuning'));
  try {
    await transaction.query(plain(text));
  } catch (error) {
    if (isAway(error) || isConflict(error)) throw error;
    await transaction.query(plain('ROLLBACK TO SAVEPOINT tuning'));
  }
}

interface StoredVersion {
  version: number;
  release: string | null;
}

async function versionOf(connections: Connections): Promise<StoredVersion> {
  const none = { version: 0, release: null };
  const [found] = await connections.query<{ tables: number }>(plain(isThere));
  if (!found || found.tables === 0) return none;
  const [row] = await connections.query<StoredVersion>(readVersion);
  return row ?? none;
}

/** PostgreSQL checks the privilege to create a schema even if it exists. */
async function hasSchema(connections: Connections): Promise<boolean> {
  const [found] = await connections.query<{ schemas: number }>(plain(isSchemaThere));
  return (found?.schemas ?? 0) > 0;
}

function refuseOther(version: number, release: string | null = null): void {
  if (version > 0 && version < oldestVersion) {
    throw new UsageError(
      `storage: the tables in PostgreSQL have version ${version}, of before 0.1.0. ` +
        'Upgrade them with Millrace 0.1.0 first.',
    );
  }
  if (version <= schemaVersion) return;
  throw new UsageError(
    `storage: the tables in PostgreSQL have version ${version}; this Millrace supports versions up ` +
      `to ${schemaVersion}. Use a newer Millrace${release === null ? '' : `: ${release} or later`}.`,
  );
}

function refuseOlder(version: number): never {
  throw new Refusal(
    'UPGRADE_NEEDED',
    `storage: the tables in PostgreSQL have version ${version}, and this Millrace would upgrade ` +
      `them to version ${schemaVersion}. Upgrades are turned off. Back the database up and start ` +
      'without --no-upgrade (upgrade: false).',
  );
}

async function upToThreeTimes(make: () => Promise<unknown>): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      await make();
      return;
    } catch (error) {
      if (failures >= 2) throw error;
    }
  }
}
