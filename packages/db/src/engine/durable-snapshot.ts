import { decodeCommit } from './changes.js';
import type { Core } from './core.js';
import { seqKey } from './storage/keys.js';
import { decodeState, stateRow, type DatabaseState } from './storage/state.js';
import type { SnapshotView } from './storage/views.js';

/** A snapshot whose last commit is on disk, with the state at that commit. */
export interface DurableSnapshot {
  view: SnapshotView;
  state: DatabaseState;
}

/**
 * A snapshot that may be spoken of outside. LMDB shows a commit a moment before it is on disk, so
 * this one waits for the disk when it was taken in that moment.
 */
export async function durableSnapshot(core: Core): Promise<DurableSnapshot> {
  for (;;) {
    const view = core.snapshot();
    try {
      const state = decodeState(view.get('meta', stateRow));
      if (await isDurable(core, state)) return { view, state };
    } catch (error) {
      view.done();
      throw error;
    }
    view.done();
  }
}

/** False when the commit did not make it to the disk and another took its number. */
async function isDurable(core: Core, state: DatabaseState): Promise<boolean> {
  if (state.seq <= core.durable.seq) return true;
  await untilDurable(core, state.seq);
  if (core.closed) throw core.closed;
  const row = core.tables.get('log', seqKey(state.seq));
  if (!row) return false;
  const { chain } = decodeCommit(state.seq, row, core.codec);
  return chain.high === state.chain.high && chain.low === state.chain.low;
}

/** Resolves when commit `seq` is on disk, or the database closes. */
export async function untilDurable(core: Core, seq: number): Promise<void> {
  if (core.closed || core.durable.seq >= seq) return;
  await new Promise<void>((resolve) => {
    const stop = core.onDurable(() => {
      if (!core.closed && core.durable.seq < seq) return;
      stop();
      resolve();
    });
  });
}
