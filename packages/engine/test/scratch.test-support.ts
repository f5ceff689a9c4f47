import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DbReason } from '@millrace/contract/db-reasons';
import { Refusal } from '@millrace/kit/errors';
import { afterEach, expect } from 'vitest';
import { decodeCommit, type Commit } from '../src/format/record.js';
import { Database, type OpenOptions } from '../src/api/database.js';
import { ManualClock } from './manual-clock.test-support.js';

/** Databases on a clock that stands still, in directories that are gone after the test. */
export interface Scratch {
  /** Opens the database of `directory`; without one, a new database. */
  open(options?: OpenOptions, directory?: string): Promise<Database>;
  /** Closes a database and opens it again. */
  reopen(database: Database, options?: OpenOptions): Promise<Database>;
  directory(): string;
  clock: ManualClock;
}

export function useScratch(): Scratch {
  const directories: string[] = [];
  const databases: Database[] = [];
  const scratch: Scratch = {
    clock: new ManualClock(),
    directory() {
      const made = mkdtempSync(join(tmpdir(), 'millrace-db-'));
      directories.push(made);
      return made;
    },
    async open(options = {}, directory = scratch.directory()) {
      const database = await Database.open(directory, { clock: scratch.clock, ...options });
      databases.push(database);
      return database;
    },
    async reopen(database, options) {
      await database.close();
      return scratch.open(options, database.directory);
    },
  };
  afterEach(async () => {
    await Promise.all(databases.splice(0).map((database) => database.close()));
    for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true });
    scratch.clock = new ManualClock();
  });
  return scratch;
}

/** The log of a database from `fromSeq` on. */
export function commitsOf(database: Database, fromSeq = 1): Commit[] {
  const { core } = database;
  const commits: Commit[] = [];
  for (let seq = fromSeq; seq <= core.durable.seq; seq++) {
    const row = core.commitRow(seq);
    if (row) commits.push(decodeCommit(seq, row, core.codec));
  }
  return commits;
}

/** What the log says that happened, in few words: `insert people/bob rev 1`. */
export function storyOf(database: Database, fromSeq = 1): string[][] {
  return commitsOf(database, fromSeq).map(({ changes }) =>
    changes.map(({ op, collection, after, before }) => {
      const image = after ?? before;
      const name = database.core.catalog.byId(collection).name;
      return `${op} ${name}/${image?.key ?? ''} rev ${image?.rev ?? 0}`;
    }),
  );
}

/** The refusal that a call must end in. */
export async function refusalOf(call: Promise<unknown>): Promise<Refusal<DbReason>> {
  const error = await call.then(
    () => 'no refusal',
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Refusal);
  return error as Refusal<DbReason>;
}
