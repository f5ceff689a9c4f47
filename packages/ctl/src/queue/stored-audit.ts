import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import type { TaskStore, WireAuditRecord } from '@millrace/queue';

type StoredRecord = Awaited<ReturnType<TaskStore['auditPage']>>[number];

/**
 * Opens the store of a data directory, which only one process may have open, and closes it again.
 */
export async function withStoredAudit<Result>(
  directory: string,
  use: (records: AsyncIterable<WireAuditRecord>) => Promise<Result>,
): Promise<Result> {
  const dataDirectory = resolve(directory);
  // Opening would create a missing store and find its log intact.
  if (!existsSync(join(dataDirectory, 'queue'))) {
    const detail = `${dataDirectory} contains no queue. Name the --data of its server.`;
    throw new Refusal('NO_QUEUE', detail);
  }
  const { openStore } = await import('@millrace/queue');
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  const store = await openStore('embedded', { ...world, dataDirectory });
  try {
    return await use(storedRecords(store));
  } finally {
    await store.close();
  }
}

const perPage = 500;

async function* storedRecords(store: TaskStore): AsyncGenerator<WireAuditRecord> {
  let beforeSeq: number | undefined;
  for (;;) {
    const records = await store.auditPage({ beforeSeq, limit: perPage });
    for (const record of records) yield wireOf(record);
    if (records.length < perPage) return;
    beforeSeq = records.at(-1)?.seq;
  }
}

/** The record in the form of the API, which its hash covers. */
function wireOf({ prevHash, at, ...rest }: StoredRecord): WireAuditRecord {
  return { ...rest, at: new Date(at).toISOString(), prev_hash: prevHash };
}
