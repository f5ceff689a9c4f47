import type { Core } from './core.js';
import type { DatabaseState } from '../storage/file/tables.js';
import type { SnapshotView } from '../storage/views.js';

/** A snapshot whose last commit is on disk, with the state at that commit. */
export interface DurableSnapshot {
  view: SnapshotView;
  state: DatabaseState;
}

/**
 * A snapshot that may be delivered outside the process. With relaxed durability readers see a
 * commit before it is on disk, so this waits for the disk. Rejects if the database closes first.
 */
export async function durableSnapshot(core: Core): Promise<DurableSnapshot> {
  for (;;) {
    const view = core.snapshot();
    const state = core.visible;
    if (state.seq <= core.durable.seq) return { view, state };
    view.done();
    await untilDurable(core, state.seq);
  }
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
