import type { CollectionInfo, IndexInfo, Core } from '../../core/core.js';
import type { IndexEntries } from '../../format/entries.js';
import { loadDeclarations } from '../../write/catalog-changes.js';
import { moveEntries } from '../../write/mutations.js';
import { type RecordImage, decodeCommit } from '../../format/record.js';
import { expiryKey, expiryKinds, idBytes, prefixed, recordKey } from '../../format/keys.js';
import { aboutResult, forgetResult } from '../../write/requests.js';

/** The new state of one record. */
interface ImageMove {
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

/** A longer tail is not rolled back in one step: such a node takes a fresh copy. */
const maxTailBytes = 64 * 2 ** 20;

/** Whether `cutTail` can go back to this commit. */
export function canCut(core: Core, afterSeq: number): boolean {
  if (afterSeq < core.state.oldestSeq - 1) return false;
  let bytes = 0;
  for (let seq = afterSeq + 1; seq <= core.durable.seq; seq++) {
    bytes += core.commitRow(seq)?.length ?? Infinity;
    if (bytes > maxTailBytes) return false;
  }
  return true;
}

/**
 * Rolls back every commit after `afterSeq`, as one step: the log has the image of each record
 * before each change. Stored results of requests are removed with their commits.
 */
export function cutTail(core: Core, afterSeq: number): Promise<void> {
  return core.writer.submitCut(() => {
    const { writer, state } = core;
    if (afterSeq >= state.seq) return;
    if (afterSeq < state.oldestSeq - 1) throw new Error(`The log does not reach to ${afterSeq}`);
    // The first image of a record in the tail is its state before the tail.
    const images = new Map<string, Omit<ImageMove, 'before'>>();
    for (let seq = afterSeq + 1; seq <= state.seq; seq++) {
      const commit = decodeCommit(seq, rowOf(core, seq), core.codec);
      for (const { collection: number, id, before } of commit.changes) {
        const name = `${number}/${id}`;
        if (images.has(name)) continue;
        images.set(name, { collection: core.catalog.byId(number), id, after: before?.keep() });
      }
    }
    const view = core.view();
    const moves = Array.from(images.values(), (move) => {
      const before: RecordImage | undefined = view.record(move.collection.id, move.id);
      return { collection: move.collection, id: move.id, before, after: move.after };
    });
    moveImages(core, moves);
    for (const { key, value } of Array.from(writer.range('requests', {}))) {
      const { seq } = aboutResult(key, value);
      if (seq === 0 || seq > afterSeq) forgetResult(core, key, value);
    }
    writer.state = { ...state, seq: afterSeq, ...lastCommit(core, afterSeq) };
  });
}

function lastCommit(core: Core, seq: number) {
  // The epoch of a commit before the log is unknown; 0 is that of the empty history.
  if (seq < core.state.oldestSeq) return { chain: core.state.oldestChain, commitEpoch: 0 };
  const { chain, epoch } = decodeCommit(seq, rowOf(core, seq), core.codec);
  return { chain, commitEpoch: epoch };
}

function rowOf(core: Core, seq: number): Buffer {
  const row = core.writer.pendingCommit(seq) ?? core.commitRow(seq);
  if (!row) throw new Error(`The log has no commit ${seq}`);
  return row;
}
