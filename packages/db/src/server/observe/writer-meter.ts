import type { Core } from '../../engine/core.js';
import type { Tables } from '../../engine/storage/tables.js';

export interface WriterObserver {
  /** A write waited this long for the writer. */
  waited(delayMs: number): void;
  /** A batch of commits took this long to reach the disk. */
  flushed(durationMs: number): void;
}

/**
 * Measures the writer's queue delay and commit latency by wrapping the commit function, also for
 * the new file after a compaction.
 */
export function meterWriter(core: Core, observer: WriterObserver): void {
  core.writer.onWaited = observer.waited;
  meterTables(core.tables, core, observer);
  const switchTo = core.switchTo.bind(core);
  core.switchTo = (tables) => {
    meterTables(tables, core, observer);
    switchTo(tables);
  };
}

function meterTables(tables: Tables, { clock }: Core, observer: WriterObserver): void {
  const commit = tables.commit.bind(tables);
  tables.commit = async (...args) => {
    const startedAt = clock.monotonic();
    await commit(...args);
    observer.flushed(clock.monotonic() - startedAt);
  };
}
