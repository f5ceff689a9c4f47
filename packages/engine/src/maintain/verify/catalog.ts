import { messageOf } from '@millrace/kit/errors';
import {
  indexRow,
  type CollectionInfo,
  type IndexInfo,
  type StoredIndex,
} from '../../core/catalog.js';
import type { Core } from '../../core/core.js';
import { formatVersion } from '../upgrade/format.js';
import { lineageRow } from '../../storage/file/state.js';
import { decodeState, freshState, stateRow, type DatabaseState } from '../../storage/file/state.js';
import type { SnapshotView } from '../../storage/views.js';
import type { Problems } from './report.js';

/** The collections and indexes that everything else is checked against. */
export interface KnownCatalog {
  state: DatabaseState;
  collections: ReadonlyMap<number, CollectionInfo>;
  indexes: ReadonlyMap<number, IndexInfo>;
  /** The indexes that were ready at the snapshot, by the name of their collection. */
  ready: ReadonlyMap<string, readonly IndexInfo[]>;
}

/** Reads the rows of `meta` and checks that their numbers are consistent. */
export function checkCatalog(core: Core, view: SnapshotView, problems: Problems): KnownCatalog {
  const state = readState(view, problems);
  const format = view.get('meta', Buffer.from('format'))?.toString();
  if (format !== String(formatVersion)) {
    problems.add('meta', 'format', `is ${format ?? 'missing'}, not ${formatVersion}`);
  }
  if (!view.get('meta', lineageRow)) problems.add('meta', 'lineage', 'is missing');
  const collections = new Map(core.catalog.allWithSystem().map((each) => [each.id, each]));
  const indexes = new Map(core.catalog.indexes().map((each) => [each.id, each]));
  if (collections.size < core.catalog.allWithSystem().length) {
    problems.add('meta', 'collections', 'two of them have the same number');
  }
  for (const { id, name } of core.catalog.allWithSystem()) {
    if (id >= state.nextCollection) {
      problems.add('meta', name, `has the number ${id}, which is still to be given`);
    }
  }
  for (const { id, name } of indexes.values()) {
    if (id >= state.nextIndex) {
      problems.add('meta', name, `has the number ${id}, which is still to be given`);
    }
  }
  return { state, collections, indexes, ready: readyIndexes(core, view) };
}

/** From the rows of the snapshot: an index may have become ready since. */
function readyIndexes(core: Core, view: SnapshotView): Map<string, IndexInfo[]> {
  const ready = new Map<string, IndexInfo[]>();
  for (const index of core.catalog.indexes()) {
    const row = view.get('meta', Buffer.from(indexRow(index.id)));
    if (!row || (JSON.parse(row.toString()) as StoredIndex).state !== 'ready') continue;
    ready.set(index.collection, [...(ready.get(index.collection) ?? []), index]);
  }
  return ready;
}

function readState(view: SnapshotView, problems: Problems): DatabaseState {
  try {
    return decodeState(view.get('meta', stateRow));
  } catch (error) {
    problems.add('meta', 'state', `cannot be read: ${messageOf(error)}`);
    return freshState;
  }
}
