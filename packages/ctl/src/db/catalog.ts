import { Refusal, UsageError } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import { humanDuration } from '@millrace/kit/units';
import type { CollectionStatus, RemoteDatabase } from '@millrace/db/client';
import { asTyped } from '../base/command-name.js';
import { renderTable, wrapped } from '../render/table.js';
import type { Outlet } from '../base/terminal.js';
import { filterOf } from '../base/arguments.js';
import { statusJson } from './shapes.js';
import { confirmed } from '../base/confirming.js';
import type { ConnectedTools, ConnectionFlags } from './connection.js';
import { counted } from '@millrace/contract/lists';

/** Refuses a collection that does not exist. Without admin access nothing is known, so nothing. */
export async function requireCollection(database: RemoteDatabase, name: string): Promise<void> {
  const collections = await readCollections(database).catch((error: unknown) => {
    if (error instanceof Refusal && error.code === 'SCOPE') return undefined;
    throw error;
  });
  if (collections) named(collections, name);
}

export async function countRecords(
  collection: string,
  conditions: readonly string[],
  flags: ConnectionFlags & { filter?: string },
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const filter = filterOf(conditions, flags.filter);
  const database = await connected();
  const count = await database.collection(collection).count(filter);
  if (count === 0) await requireCollection(database, collection);
  terminal.showLine({ count }, `${count}\n`);
}

export async function listCollections(_flags: object, { connected, terminal }: ConnectedTools) {
  const collections = await readCollections(await connected());
  terminal.show({ collections: statusJson(collections) }, (out) =>
    collectionsTable(collections, out),
  );
}

export async function showCollection(
  name: string,
  _flags: object,
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const found = named(await readCollections(await connected()), name);
  terminal.show({ collection: statusJson(found) }, (out) => collectionsTable([found], out));
}

export async function listIndexes(
  name: string | undefined,
  _flags: object,
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const all = await readCollections(await connected());
  const chosen = name === undefined ? all : [named(all, name)];
  const indexes = chosen.flatMap(({ name: collection, indexes: own }) =>
    own.map((index) => ({ collection, ...index })),
  );
  const titles = ['COLLECTION', 'INDEX', 'UNIQUE', 'SPARSE', 'KIND', 'STATE'];
  const rows = indexes.map((index) => [
    index.collection,
    index.kind ? index.name : index.fields.join(', '),
    index.unique ? 'yes' : 'no',
    index.sparse ? 'yes' : 'no',
    kindText(index),
    index.state,
  ]);
  terminal.show({ indexes }, (out) =>
    indexes.length === 0
      ? asTyped('No indexes. Create one with: ctl db index create COLLECTION FIELD...\n')
      : renderTable(titles, rows, out),
  );
}

export async function readCollections(
  database: RemoteDatabase,
): Promise<readonly CollectionStatus[]> {
  return (await database.status({ includeCollections: true })).collections;
}

export function named(collections: readonly CollectionStatus[], name: string): CollectionStatus {
  const found = collections.find((each) => each.name === name);
  if (found) return found;
  const names = collections.map((each) => each.name);
  const hint = suggestion(name, names) || '. List collections with: ctl db collection list';
  throw new Refusal('COLLECTION_NOT_FOUND', `Collection "${name}" does not exist${hint}`);
}

export function collectionsTable(collections: readonly CollectionStatus[], out: Outlet): string {
  if (collections.length === 0) return 'No collections yet. The first record creates one.\n';
  const rows = collections.map(({ name, records, indexes, defaultTtlMs }) => [
    name,
    records,
    defaultTtlMs > 0 ? humanDuration(defaultTtlMs) : '',
    indexes.map(indexText).join('; '),
  ]);
  return renderTable(['COLLECTION', 'RECORDS', 'TTL', wrapped('INDEXES')], rows, out);
}

function indexText(index: CollectionStatus['indexes'][number]): string {
  const { fields, unique, sparse, state } = index;
  const words = [
    `(${fields.join(', ')})`,
    unique ? 'unique' : '',
    sparse ? 'sparse' : '',
    kindText(index),
    state === 'ready' ? '' : state,
  ];
  return words.filter((word) => word !== '').join(' ');
}

function kindText(index: CollectionStatus['indexes'][number]): string {
  const { collation, where, kind, language, dims, storage } = index;
  return [kind, language, dims, storage, collation, where && 'partial'].filter(Boolean).join(' ');
}

export async function dropCollection(
  collection: string,
  { yes }: { yes?: boolean },
  { connected, terminal, database: shell }: ConnectedTools,
): Promise<void> {
  const database = await connected();
  const { records } = named(await readCollections(database), collection);
  if (!yes && terminal.in.isScreen) {
    // The shell reads the terminal itself.
    if (shell) throw new UsageError(`Add --yes to delete ${counted(records, 'record')}.`);
    const question = `Delete "${collection}" with ${counted(records, 'record')}? [y/N] `;
    if (!(await confirmed(question, terminal))) {
      throw new Refusal('NOT_CONFIRMED', 'Nothing was deleted.');
    }
  }
  const { deleted, seq } = await database.catalog.drop(collection);
  const text = `Dropped "${collection}" with ${counted(deleted, 'record')}.\n`;
  terminal.showLine({ deleted, seq }, text);
}

export async function renameCollection(
  collection: string,
  newName: string,
  _flags: object,
  { connected, terminal }: ConnectedTools,
): Promise<void> {
  const database = await connected();
  named(await readCollections(database), collection);
  const { moved, seq } = await database.catalog.rename(collection, newName);
  const text = `Renamed "${collection}" to "${newName}" with ${counted(moved, 'record')}.\n`;
  terminal.showLine({ moved, seq }, text);
}
