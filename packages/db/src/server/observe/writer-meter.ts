import type { Core } from '../../engine/core.js';

export interface WriterObserver {
  /** A job waited this long for its turn in the writer. */
  waited(delayMs: number): void;
  /** A batch of commits took this long to reach the disk. */
  flushed(durationMs: number): void;
}

/** Times the writer's queue and its flushes, these from outside: each is wrapped. */
export function meterWriter(core: Core, observer: WriterObserver): void {
  core.writer.onWaited = observer.waited;
  const { store, clock } = core;
  const commit = store.commit.bind(store);
  store.commit = async (...args) => {
    const startedAt = clock.monotonic();
    await commit(...args);
    observer.flushed(clock.monotonic() - startedAt);
  };
}
