import type { Core } from '../../engine/core.js';
import type { Tables } from '../../engine/storage/tables.js';

export interface WriterObserver {
  /** A job waited this long for its turn in the writer. */
  waited(delayMs: number): void;
  /** A batch of commits took this long to reach the disk. */
  flushed(durationMs: number): void;
}

/**
 * Times the writer's queue and its commits, these from outside: each is wrapped where it is handed
 * over. A compaction puts another file in place, which is wrapped as well.
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
