import type { Flags } from '../base/tools.js';
import { UsageError } from '@millrace/kit/errors';
import { documentOf, durationOf, wholeNumber } from '../base/arguments.js';
import type { ConnectedTools, ConnectionFlags } from './connection.js';
import { recordNamed, type Found } from './reads.js';
import { recordSheet } from './records-table.js';
import { recordJson } from './shapes.js';

type WriteFlags = ConnectionFlags & Flags<'ttl requestId ifRev'>;

function optionsOf({ ttl, requestId }: WriteFlags) {
  return { ttlMs: durationOf(ttl, '--ttl'), requestId };
}

export async function insertRecord(
  collection: string,
  given: string | undefined,
  flags: WriteFlags & { recordKey?: string; id?: string },
  tools: ConnectedTools,
): Promise<void> {
  const { recordKey: key, id } = flags;
  const data = await documentOf(given, tools.terminal);
  const options = optionsOf(flags);
  const records = (await tools.connected()).collection(collection);
  if (key !== undefined && id !== undefined) {
    throw new UsageError('Give --record-key or --id, not both.');
  }
  const record =
    key === undefined
      ? await records.insert(data, { ...options, ...(id === undefined ? {} : { id }) })
      : await records.insertWithKey(key, data, options);
  show(record, {}, tools);
}

export async function putRecord(
  collection: string,
  key: string,
  given: string | undefined,
  flags: WriteFlags & { merge?: boolean },
  tools: ConnectedTools,
): Promise<void> {
  const data = await documentOf(given, tools.terminal);
  const ifRev = wholeNumber(flags.ifRev, '--if-rev');
  const options = optionsOf(flags);
  const records = (await tools.connected()).collection(collection);
  if (ifRev !== undefined) {
    if (flags.merge)
      throw new UsageError('--if-rev replaces the record, so it cannot be combined with --merge.');
    const record = await records.updateIfRev({ key }, ifRev, data, options);
    show(record, { created: ifRev === 0 }, tools);
    return;
  }
  const { record, created } = flags.merge
    ? await records.upsertMerge(key, data, options)
    : await records.upsert(key, data, options);
  show(record, { created }, tools);
}

export async function updateRecord(
  collection: string,
  name: string,
  given: string | undefined,
  flags: WriteFlags,
  tools: ConnectedTools,
): Promise<void> {
  // With one argument it is the update, and --key names the record instead of the API key.
  const isByKey = given === undefined && flags.key !== undefined;
  const { key, ...others } = flags;
  const update = await documentOf(isByKey ? name : given, tools.terminal);
  const ifRev = wholeNumber(flags.ifRev, '--if-rev');
  const options = optionsOf(flags);
  const database = await tools.connected(isByKey ? others : flags);
  if (!Object.keys(update).some((each) => each.startsWith('$'))) {
    throw new UsageError(
      'The update has no operator such as $set or $inc. To replace the record use: ctl db put',
    );
  }
  const address = isByKey
    ? { key: key! }
    : { id: (await recordNamed(database, collection, name)).id };
  const records = database.collection(collection);
  const record =
    ifRev === undefined
      ? await records.update(address, update, options)
      : await records.updateIfRev(address, ifRev, update, options);
  show(record, {}, tools);
}

export async function deleteRecord(
  collection: string,
  name: string,
  _flags: ConnectionFlags,
  tools: ConnectedTools,
): Promise<void> {
  const database = await tools.connected();
  const { id } = await recordNamed(database, collection, name);
  const gone = await database.collection(collection).delete(id);
  // As in REST: the record has the commit that last changed it, `seq` is the one that deleted it.
  show(gone, { seq: gone.deletedSeq }, tools);
}

function show(record: Found, more: object, { terminal }: ConnectedTools): void {
  terminal.show({ record: recordJson(record), ...more }, (out) => recordSheet(record, out));
}
