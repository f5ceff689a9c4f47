import { UsageError } from '@millrace/kit/errors';
import type { Connections, Transaction } from './connections.js';
import { isAway, isConflict } from './failures.js';
import { tables } from './migrations/0001-tables.sql.js';
import { upkeep } from './migrations/0002-upkeep.sql.js';
import { claims, claimsUpkeep } from './migrations/0003-claims.sql.js';
import { successes, successesUpkeep } from './migrations/0004-successes.sql.js';
import { floors } from './migrations/0005-floors.sql.js';
import { oneClaimPath, oneClaimPathTuning } from './migrations/0006-one-claim-path.sql.js';
import { statement } from './statement.js';

interface Migration {
  texts: readonly string[];
  /** The engine may refuse these, each for itself, and the tables are right all the same. */
  wishes: readonly string[];
}

/** Each is applied once, in this order, and never changed after a release. */
const migrations: readonly Migration[] = [
  { texts: tables, wishes: [] },
  { texts: [], wishes: upkeep },
  { texts: claims, wishes: claimsUpkeep },
  { texts: successes, wishes: successesUpkeep },
  { texts: floors, wishes: [] },
  { texts: oneClaimPath, wishes: oneClaimPathTuning },
];

const schemaVersion = migrations.length;

const makeSchema = 'CREATE SCHEMA IF NOT EXISTS millrace';
const makeVersion = `CREATE TABLE IF NOT EXISTS millrace.schema_version (
  one boolean PRIMARY KEY,
  version integer NOT NULL
)`;
const firstVersion = `INSERT INTO millrace.schema_version (one, version) VALUES (true, 0)
  ON CONFLICT (one) DO NOTHING`;
const readVersion = statement(
  'read_version',
  `SELECT version FROM millrace.schema_version WHERE one`,
);
const lockVersion = `SELECT version FROM millrace.schema_version WHERE one FOR UPDATE`;
const writeVersion = 'UPDATE millrace.schema_version SET version = $1 WHERE one';
const isThere = `SELECT count(*) AS tables FROM information_schema.tables
  WHERE table_schema = 'millrace' AND table_name = 'schema_version'`;

// Not of information_schema, which shows a role the schemas that it owns and no other.
const isSchemaThere = `SELECT count(*) AS schemas FROM pg_catalog.pg_namespace
  WHERE nspname = 'millrace'`;

const plain = (text: string) => ({ name: '', text });

/**
 * Brings the tables to the form that this program knows. Several servers may begin at once: the row
 * of the version is the lock. Tables of a newer program are refused.
 *
 * `patient`: connections whose statements may take long, as they do where the tables are large.
 */
export async function migrate(connections: Connections, patient: () => Connections): Promise<void> {
  const version = await versionOf(connections);
  refuseNewer(version);
  if (version === schemaVersion) return;
  // One of several that make the same thing at the same moment may be refused.
  if (!(await hasSchema(connections))) {
    await atMostThrice(() => connections.query(plain(makeSchema)));
  }
  await atMostThrice(() => connections.query(plain(makeVersion)));
  await connections.query(plain(firstVersion));
  const unhurried = patient();
  try {
    await unhurried.transact(bring);
  } finally {
    await unhurried.close();
  }
}

async function bring(transaction: Transaction): Promise<void> {
  const [row] = await transaction.query<{ version: number }>(plain(lockVersion));
  refuseNewer(row!.version);
  for (const { texts, wishes } of migrations.slice(row!.version)) {
    for (const text of texts) await transaction.query(plain(text));
    for (const text of wishes) await wish(transaction, text);
  }
  await transaction.query(plain(writeVersion), [schemaVersion]);
}

/** Undoes a refused statement alone; a database that is away is not a refusal. */
async function wish(transaction: Transaction, text: string): Promise<void> {
  await transaction.query(plain('SAVEPOINT wish'));
  try {
    await transaction.query(plain(text));
  } catch (error) {
    if (isAway(error) || isConflict(error)) throw error;
    await transaction.query(plain('ROLLBACK TO SAVEPOINT wish'));
  }
}

async function versionOf(connections: Connections): Promise<number> {
  const [found] = await connections.query<{ tables: number }>(plain(isThere));
  if (!found || found.tables === 0) return 0;
  const [row] = await connections.query<{ version: number }>(readVersion);
  return row?.version ?? 0;
}

/** A role that may not make one can be given one; PostgreSQL asks for the right even then. */
async function hasSchema(connections: Connections): Promise<boolean> {
  const [found] = await connections.query<{ schemas: number }>(plain(isSchemaThere));
  return (found?.schemas ?? 0) > 0;
}

function refuseNewer(version: number): void {
  if (version <= schemaVersion) return;
  throw new UsageError(
    `storage: the tables in PostgreSQL have version ${version}; this Millrace knows versions up ` +
      `to ${schemaVersion}. Use a newer Millrace.`,
  );
}

async function atMostThrice(make: () => Promise<unknown>): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      await make();
      return;
    } catch (error) {
      if (failures >= 2) throw error;
    }
  }
}
