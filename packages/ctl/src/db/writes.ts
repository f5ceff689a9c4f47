import { UsageError } from '@millrace/kit/errors';
import type { RemoteDatabase } from '@millrace/db/client';
import type { Tools } from '../base/tools.js';
import { recordNamed, type Found } from './reads.js';
import { recordSheet } from './records-table.js';
import { recordJson } from './shapes.js';

type Shows = Pick<Tools, 'terminal'>;

export async function insertRecord(
  database: RemoteDatabase,
  options: {
    collection: string;
    data: Record<string, unknown>;
    key: string | undefined;
    id: string | undefined;
    ttlMs: number | undefined;
    requestId: string | undefined;
  },
  tools: Shows,
): Promise<void> {
  const { data, key, id, ttlMs, requestId } = options;
  const records = database.collection(options.collection);
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
  options: {
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
  const { key, data, merge, ifRev, ttlMs, requestId } = options;
  const records = database.collection(options.collection);
  const writeOptions = { ttlMs, requestId };
  if (ifRev !== undefined) {
    if (merge)
      throw new UsageError('--if-rev replaces the record, so it cannot be combined with --merge.');
    const record = await records.updateIfRev({ key }, ifRev, data, writeOptions);
    show(record, { created: ifRev === 0 }, tools);
    return;
  }
  const { record, created } = merge
    ? await records.upsertMerge(key, data, writeOptions)
    : await records.upsert(key, data, writeOptions);
  show(record, { created }, tools);
}

export async function updateRecord(
  database: RemoteDatabase,
  options: {
    collection: string;
    /** Id or key. */
    name: string | undefined;
    key: string | undefined;
    update: Record<string, unknown>;
    ifRev: number | undefined;
    ttlMs: number | undefined;
    requestId: string | undefined;
  },
  tools: Shows,
): Promise<void> {
  const { collection, name, key, update, ifRev, ttlMs, requestId } = options;
  if (!Object.keys(update).some((each) => each.startsWith('$'))) {
    throw new UsageError(
      'The update has no operator such as $set or $inc. To replace the record use: ctl db put',
    );
  }
  const address =
    key !== undefined ? { key } : { id: (await recordNamed(database, collection, name!)).id };
  const records = database.collection(collection);
  const call = { ttlMs, requestId };
  const record =
    ifRev === undefined
      ? await records.update(address, update, call)
      : await records.updateIfRev(address, ifRev, update, call);
  show(record, {}, tools);
}

export async function deleteRecord(
  database: RemoteDatabase,
  options: { collection: string; name: string },
  tools: Shows,
): Promise<void> {
  const { id } = await recordNamed(database, options.collection, options.name);
  const gone = await database.collection(options.collection).delete(id);
  // As in REST: the record has the commit that last changed it, `seq` is the one that deleted it.
  show(gone, { seq: gone.deletedSeq }, tools);
}

function show(record: Found, more: object, { terminal }: Shows): void {
  terminal.show({ record: recordJson(record), ...more }, (out) => recordSheet(record, out));
}
