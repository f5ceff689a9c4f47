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
    const { lsn } = view;
    if (lsn <= core.store.durableLsn) return { view, state };
    view.done();
    await until(core, () => core.store.durableLsn >= lsn);
  }
}

/** Resolves when commit `seq` is on disk, or the database closes. */
export function untilDurable(core: Core, seq: number): Promise<void> {
  return until(core, () => core.durable.seq >= seq);
}

async function until(core: Core, isDone: () => boolean): Promise<void> {
  if (core.closed || isDone()) return;
  await new Promise<void>((resolve) => {
    const stop = core.onDurable(() => {
      if (!core.closed && !isDone()) return;
      stop();
      resolve();
    });
  });
}
