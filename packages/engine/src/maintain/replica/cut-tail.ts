import { decodeCommit } from '../../format/changes.js';
import type { Core } from '../../core/core.js';
import type { RecordImage } from '../../format/record.js';
import { aboutResult, forgetResult } from '../../write/requests.js';
import { moveImages, type ImageMove } from './move-images.js';

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
