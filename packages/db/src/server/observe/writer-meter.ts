import type { Core } from '@millrace/engine/core/core';

export interface WriterObserver {
  /** A write waited this long for the writer. */
  waited(delayMs: number): void;
  /** A batch of commits took this long to reach the disk. */
  flushed(durationMs: number): void;
}

/** Measures the writer's queue delay and commit latency by wrapping the commit function. */
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
