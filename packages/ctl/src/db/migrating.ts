import { wholeNumber } from '../base/arguments.js';
import type { ConnectedTools } from './connection.js';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, Refusal, UsageError } from '@millrace/kit/errors';
import {
  checkMigrations,
  migrated,
  migrationsCollection,
  nextState,
  versionAt,
  type Migration,
  type MigrationState,
  type RemoteCollection,
} from '@millrace/db/client';
import { counted } from '@millrace/contract/lists';
import { requireCollection } from './catalog.js';
import { Progress } from './progress.js';

export interface MigrateParams {
  collection: string;
  module: string;
  batch: number;
}

/** Migrates the records of a collection with revision checks, in batches; safe to repeat. */
export async function migrateCollection(
  collection: string,
  { module, batch: given }: { module: string; batch?: string },
  { connected, terminal, lifecycle }: ConnectedTools,
): Promise<void> {
  const batch = Math.min(wholeNumber(given, '--batch', 1) ?? 500, 10_000);
  const database = await connected();
  const migrations = await loadMigrations(collection, module);
  const records = database.collection(collection);
  const states = database.collection<MigrationState>(migrationsCollection);
  const first = await records.find({ limit: 1, fields: ['$id'] });
  if (first.records.length === 0) await requireCollection(database, collection);
  const state = await begin(states, collection, migrations, first);
  const progress = new Progress(terminal, 'Migrated');
  let written = 0;
  try {
    for (let cursor = '', isEnd = state.levels.length === 0; !isEnd;) {
      if (lifecycle.interrupted.aborted)
        throw new Refusal('CANCELLED', 'Stopped. Repeat to resume.');
      const page = await records.find({ limit: batch, cursor });
      const old = page.records.filter(({ seq }) => versionAt(state, seq) !== state.version);
      written += await writeBatch(records, collection, migrations, state, old);
      progress.show({ records: written });
      cursor = page.nextCursor;
      isEnd = cursor === '';
    }
  } finally {
    progress.end();
  }
  const { version } = state;
  if (state.levels.length > 0) await states.upsert(collection, { version, levels: [] });
  terminal.showLine(
    { collection, version, migrated: written },
    `"${collection}" is at version ${version}; ${counted(written, 'record')} migrated.\n`,
  );
}

/** Stores from which commit on records are new, before the first one is changed. */
async function begin(
  states: RemoteCollection<MigrationState>,
  collection: string,
  migrations: readonly Migration[],
  { records, readSeq }: { records: readonly unknown[]; readSeq: number },
): Promise<MigrationState> {
  const stored = await states.findByKey(collection);
  const before = stored?.data ?? { version: 0, levels: [] };
  const next = nextState(collection, before, migrations, readSeq, records.length === 0);
  if (next.version === before.version && next.levels.length === before.levels.length) return next;
  const saved = await states.updateIfRev({ key: collection }, stored?.rev ?? 0, next);
  return saved.data;
}

type Records = RemoteCollection<Record<string, unknown>>;
type Found = Awaited<ReturnType<Records['find']>>['records'][number];

/** Writes the migrated documents of a page and returns how many there were. */
async function writeBatch(
  records: Records,
  collection: string,
  migrations: readonly Migration[],
  state: MigrationState,
  batch: readonly Found[],
): Promise<number> {
  const operations = batch.map(({ id, rev, seq, data }) => {
    const document = migrated(collection, migrations, versionAt(state, seq), id, data as never);
    return { update: { id, data: document, expectedRev: rev } };
  });
  if (operations.length === 0) return 0;
  const { results } = await records.bulkWrite(operations);
  const failed = results.find(
    ({ error }) => error && !['REV_MISMATCH', 'RECORD_NOT_FOUND'].includes(error.reason),
  );
  if (failed) {
    throw new Refusal(failed.error!.reason, `Record ${failed.id}: ${failed.error!.message}`);
  }
  // A record that another caller wrote meanwhile is of the new form; a deleted one is gone.
  return results.filter(({ status }) => status === 'OK').length;
}

async function loadMigrations(collection: string, file: string): Promise<readonly Migration[]> {
  let loaded: { default?: unknown; migrations?: unknown };
  try {
    loaded = (await import(pathToFileURL(resolve(file)).href)) as typeof loaded;
  } catch (error) {
    const isMissing = !existsSync(file);
    const problem = isMissing ? 'there is no such file' : messageOf(error);
    throw new Refusal('BAD_MODULE', `${file} cannot be loaded as a module: ${problem}.`);
  }
  const list = loaded.migrations ?? loaded.default;
  if (list === undefined) {
    throw new UsageError(
      `${file} exports no migrations. Write: export const migrations = [{ version: 1, up(doc) {} }];`,
    );
  }
  return checkMigrations(collection, list);
}
