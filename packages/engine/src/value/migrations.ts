import { messageOf, Refusal, UsageError } from '@millrace/kit/errors';
import { toDocument, type JsonObject } from './documents.js';

/** A step of the documents of a collection from one version to the next. */
export interface Migration {
  /** One more than the version before it. */
  version: number;
  /** Changes the document, which is a copy, or returns another one. Synchronous. */
  up(document: Record<string, unknown>): object | void;
}

/** The versions of a collection: a record of the collection `millrace.migrations`. */
export interface MigrationState {
  /** Of every record that no level names. */
  version: number;
  /** Records last written at or before the commit `seq` are of this version, lowest first. */
  levels: { version: number; seq: number }[];
}

/** The collection with one record for each migrated collection, by its name as the key. */
export const migrationsCollection = 'millrace.migrations';

/** Refuses migrations whose versions do not rise by one. */
export function checkMigrations(collection: string, given: unknown): readonly Migration[] {
  const fail = (problem: string) => new UsageError(`The migrations of "${collection}" ${problem}.`);
  if (!Array.isArray(given)) throw fail('must be a list such as [{ version: 1, up(doc) { ... } }]');
  const list = given as Partial<Migration>[];
  list.forEach((each, i) => {
    const { version, up } = each ?? {};
    if (!Number.isSafeInteger(version) || version! < 1) {
      throw fail(`have a version that is not a whole number from 1 on: ${String(version)}`);
    }
    if (typeof up !== 'function') throw fail(`lack the function up in version ${version}`);
    const before = list[i - 1]?.version;
    if (before !== undefined && version !== before + 1) {
      throw fail(`must be unique and rise by one: ${version} comes after ${before}`);
    }
  });
  return list as Migration[];
}

/** The state once the migrations are known, at the commit `seq`. Refuses what they cannot migrate. */
export function nextState(
  collection: string,
  { version, levels }: MigrationState,
  migrations: readonly Migration[],
  seq: number,
  isEmpty: boolean,
): MigrationState {
  const last = migrations.at(-1)?.version ?? version;
  if (version > last) {
    throw new UsageError(
      `"${collection}" has documents of version ${version}, and its migrations end with ${last}: ` +
        'use the program that wrote them, or a newer one.',
    );
  }
  if (isEmpty) return { version: last, levels: [] };
  const pending = version < last ? [...levels, { version, seq }] : levels;
  const first = migrations[0]?.version ?? 1;
  const lowest = pending[0]?.version ?? last;
  if (first > lowest + 1) {
    throw new UsageError(
      `"${collection}" has documents of version ${lowest}, and its migrations begin with ${first}: ` +
        `add the version ${lowest + 1}.`,
    );
  }
  return { version: last, levels: pending };
}

/** The version of a record that was last written by the commit `seq`. */
export function versionAt({ version, levels }: MigrationState, seq: number): number {
  return levels.find((level) => seq <= level.seq)?.version ?? version;
}

/** The document in the form of the last version. Refuses MIGRATION_FAILED with the record. */
export function migrated(
  collection: string,
  migrations: readonly Migration[],
  version: number,
  id: string,
  data: JsonObject,
): JsonObject {
  let document = data;
  for (const { version: step, up } of migrations) {
    if (step <= version) continue;
    try {
      const result: unknown = up(document) ?? document;
      if (result instanceof Promise) {
        result.catch(() => undefined);
        throw new TypeError('up returned a promise; it must be synchronous');
      }
      document = toDocument(result);
    } catch (error) {
      // Not in the contract: only a program that has the migrations gets it.
      throw new Refusal(
        'MIGRATION_FAILED',
        `Migration ${step} of "${collection}" failed for the record ${id}: ${messageOf(error)}`,
        { cause: error, members: { metadata: { collection, id } } },
      );
    }
  }
  return document;
}
