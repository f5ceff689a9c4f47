import type { CollectionInfo, IndexInfo } from '../../core/catalog.js';
import type { Core } from '../../core/core.js';
import type { IndexEntries } from '../../format/entries.js';
import { loadDeclarations } from '../../write/declarations.js';
import { moveEntries } from '../../write/mutations.js';
import type { RecordImage } from '../../format/record.js';
import { expiryKey, expiryKinds, idBytes, prefixed, recordKey } from '../../format/keys.js';

/** The new state of one record. */
export interface ImageMove {
  collection: CollectionInfo;
  id: string;
  /** The stored record. */
  before: RecordImage | undefined;
  after: RecordImage | undefined;
}

type Entries = Pick<IndexEntries, 'values' | 'unique' | 'multi' | 'cut'>;
const noEntries: Entries = { values: [], unique: [], multi: false, cut: false };
const noBytes = Buffer.alloc(0);

/**
 * Stores records as another node, or an earlier state, has them: nothing is refused. Inside a job.
 * All old rows are removed before new ones are added, because two records of one commit may have
 * swapped a key or a unique value.
 */
export function moveImages(core: Core, moves: readonly ImageMove[]): void {
  for (const move of moves) leave(core, move);
  for (const move of moves) arrive(core, move);
  if (moves.some(({ collection }) => collection === core.catalog.system)) loadDeclarations(core);
}

function leave(core: Core, { collection, id, before, after }: ImageMove): void {
  if (!before) return;
  const { writer } = core;
  for (const index of collection.indexes) {
    if (index.state === 'failed') continue;
    moveEntries(core, index, id, index.compiled.entriesOf(before), noEntries);
  }
  if (before.key && before.key !== after?.key) {
    const row = prefixed(collection.id, Buffer.from(before.key));
    if (writer.get('keys', row)?.equals(idBytes(id))) writer.remove('keys', row);
  }
  if (before.expiresAt && before.expiresAt !== after?.expiresAt) {
    const what = recordKey(collection.id, id);
    writer.remove('expiry', expiryKey(before.expiresAt, expiryKinds.record, what));
  }
}

function arrive(core: Core, { collection, id, after }: ImageMove): void {
  const { writer } = core;
  const row = recordKey(collection.id, id);
  if (!after) {
    writer.remove('records', row);
    return;
  }
  for (const index of collection.indexes) addEntries(core, index, id, after);
  writer.put('records', row, after.bytes as Buffer);
  if (after.key) writer.put('keys', prefixed(collection.id, Buffer.from(after.key)), idBytes(id));
  if (after.expiresAt) {
    writer.put('expiry', expiryKey(after.expiresAt, expiryKinds.record, row), noBytes);
  }
}

/**
 * A unique index that only this node declares may conflict with the data of its leader. Then the
 * index is marked as failed, and the data is kept.
 */
function addEntries(core: Core, index: IndexInfo, id: string, after: RecordImage): void {
  if (index.state === 'failed') return;
  const fresh = index.compiled.entriesOf(after);
  const holder = idBytes(id);
  const isTaken = (values: Uint8Array) => {
    const other = core.writer.get('unique', prefixed(index.id, values));
    return other !== undefined && !other.equals(holder);
  };
  if (fresh.unique.some(isTaken)) {
    const problem = `The leader has two records of "${index.collection}" with the same values.`;
    core.catalog.setIndexState(index, 'failed', problem);
    core.log.error({ index: index.name }, 'A unique index does not fit the data of the leader');
    return;
  }
  core.catalog.noteEntry(index, fresh.multi, fresh.cut);
  moveEntries(core, index, id, noEntries, fresh);
}
