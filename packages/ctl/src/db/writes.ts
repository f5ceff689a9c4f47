import { UsageError } from '@millrace/kit/errors';
import type { RemoteDatabase } from '@millrace/db/client';
import type { Tools } from '../tools.js';
import { recordNamed, type Found } from './reads.js';
import { recordSheet } from './record-sheet.js';
import { recordJson } from './shapes.js';

type Shows = Pick<Tools, 'terminal'>;

export async function insertRecord(
  database: RemoteDatabase,
  ask: {
    collection: string;
    data: Record<string, unknown>;
    key: string | undefined;
    id: string | undefined;
    ttlMs: number | undefined;
    requestId: string | undefined;
  },
  tools: Shows,
): Promise<void> {
  const { data, key, id, ttlMs, requestId } = ask;
  const records = database.collection(ask.collection);
  if (key !== undefined && id !== undefined) {
    throw new UsageError('Give --record-key or --id, not both.');
  }
  const record =
    key === undefined
      ? await records.insert(data, { ttlMs, requestId, ...(id === undefined ? {} : { id }) })
      : await records.insertWithKey(key, data, { ttlMs, requestId });
  show(record, {}, tools);
}

export async function putRecord(
  database: RemoteDatabase,
  ask: {
    collection: string;
    key: string;
    data: Record<string, unknown>;
    merge: boolean;
    ifRev: number | undefined;
    ttlMs: number | undefined;
    requestId: string | undefined;
  },
  tools: Shows,
): Promise<void> {
  const { key, data, merge, ifRev, ttlMs, requestId } = ask;
  const records = database.collection(ask.collection);
  const options = { ttlMs, requestId };
  if (ifRev !== undefined) {
    if (merge) throw new UsageError('--if-rev replaces the record; it does not go with --merge.');
    const record = await records.updateIfRev({ key }, ifRev, data, options);
    show(record, { created: ifRev === 0 }, tools);
    return;
  }
  const { record, created } = merge
    ? await records.upsertMerge(key, data, options)
    : await records.upsert(key, data, options);
  show(record, { created }, tools);
}

export async function deleteRecord(
  database: RemoteDatabase,
  ask: { collection: string; name: string },
  tools: Shows,
): Promise<void> {
  const { id } = await recordNamed(database, ask.collection, ask.name);
  const gone = await database.collection(ask.collection).delete(id);
  // As REST has it: the record tells the commit that last changed it, `seq` the one that deleted it.
  show(gone, { seq: gone.deletedSeq }, tools);
}

function show(record: Found, more: object, { terminal }: Shows): void {
  const { out, json } = terminal;
  if (json) out.write(`${JSON.stringify({ record: recordJson(record), ...more }, null, 2)}\n`);
  else out.write(recordSheet(record, out));
}
