import { writeSync } from 'node:fs';
import { restore } from '../src/maintain/backup/restore.js';
import type { CompactStage } from '../src/maintain/compact/compact.js';
import { Database } from '../src/api/database.js';

/** Work for processes that are killed in the middle of it; see killed-process.test-support.ts. */

function die(): void {
  process.kill(process.pid, 'SIGKILL');
}

/** Compacts under load and is killed at the given stage. Prints every confirmed write. */
export async function compactUntil(
  directory: string,
  stage: CompactStage,
  sight: number,
): Promise<void> {
  const db = await Database.open(directory, {
    collections: { items: { indexes: [{ fields: ['n'] }] } },
  });
  const items = db.collection<{ n: number }>('items');
  for (let writer = 0; writer < 4; writer++) {
    void (async () => {
      for (let n = 0; ; n++) {
        const key = `w${writer}-${n % 50}`;
        await items.upsert(key, { n });
        writeSync(1, `${key} ${n}\n`);
      }
    })();
  }
  let seen = 0;
  await db.compact({
    onStage: (at) => {
      if (at === stage && ++seen === sight) die();
    },
  });
}

export async function restoreUntil(
  file: string,
  directory: string,
  records: number,
): Promise<void> {
  await restore([file], directory, {
    onProgress: (progress) => {
      if (progress.stage === 'restore' && progress.records >= records) die();
    },
  });
}

/** Dies when everything is in place but not yet declared to be. */
export async function restoreUntilVerify(file: string, directory: string): Promise<void> {
  await restore([file], directory, {
    onProgress: ({ stage }) => {
      if (stage === 'verify') die();
    },
  });
}

export async function backupUntil(
  directory: string,
  file: string,
  sinceSeq?: number,
): Promise<void> {
  const db = await Database.open(directory);
  await db.writeBackup(file, { onProgress: die, sinceSeq, batches: sinceSeq !== undefined });
}

/** Writes and archives at the same time and dies after `writes` acknowledged writes. */
export async function archiveUntil(
  directory: string,
  archive: string,
  writes: number,
): Promise<void> {
  const db = await Database.open(directory, { logArchive: { directory: archive, intervalMs: 1 } });
  const items = db.collection<{ n: number }>('items');
  for (let n = 0; ; n++) {
    const { seq } = await items.insertWithKey(`k${process.pid}-${n}`, { n });
    writeSync(1, `${seq}\n`);
    if (n === writes) die();
  }
}

/** Migrates and is killed in the middle of a batch. Prints how many were migrated before. */
export async function migrateUntil(directory: string, count: number): Promise<void> {
  let migrated = 0;
  const up = (doc: Record<string, unknown>) => {
    if (++migrated > count) die();
    doc['full'] = `${String(doc['first'])} ${String(doc['last'])}`;
    delete doc['first'];
    delete doc['last'];
  };
  const db = await Database.open(directory, {
    collections: { people: { migrations: [{ version: 1, up }] } },
  });
  await db.migrated();
}

/** 64 callers add to one number until the process is killed. Prints a line for each answer. */
export async function addUntil(directory: string, count: number): Promise<void> {
  const db = await Database.open(directory);
  const counters = db.collection<{ n: number }>('counters');
  let answers = 0;
  const caller = async () => {
    for (;;) {
      await counters.upsert('one', { $inc: { n: 1 } });
      writeSync(1, '+\n');
      if (++answers === count) die();
    }
  };
  await Promise.all(Array.from({ length: 64 }, caller));
}
