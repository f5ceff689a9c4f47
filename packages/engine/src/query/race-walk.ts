import { IdCollector } from './collect-ids.js';
import { sortSteps } from './merge-sort.js';
import type { Access } from './plan.js';
import { IdWalk, ScanWalk, type Visit, type Walk, type WalkSource } from './walk.js';

// Most queries served by an index are finished before that.
const defaultHeadStart = 4096;
const stepLength = 4096;

/**
 * Records selected by an index, in id order. That needs all their ids, sorted, which is best when
 * they are few. When they are many, a scan of the collection soon finds enough of them for a page.
 * Which is faster only shows at run time, so both run side by side, and what the scan has passed is
 * already found: the work is at most about twice that of the faster one.
 */
export class RaceWalk implements Walk {
  readonly #collector: IdCollector;
  readonly #scan: ScanWalk;
  #sorting: Generator<void, string[], void> | undefined;
  #rest: IdWalk | undefined;

  constructor(
    private readonly source: WalkSource,
    access: Access,
    private readonly idDesc: boolean,
    private readonly resumeId: string | undefined,
    private readonly headStart = defaultHeadStart,
  ) {
    this.#collector = new IdCollector(source, access);
    this.#scan = new ScanWalk(source, idDesc, undefined, resumeId);
  }

  get rows(): number {
    return this.#collector.rows + this.#scan.rows;
  }

  run(visit: Visit): boolean {
    const { slice } = this.source;
    while (!this.#rest) {
      if (this.#sorting) {
        const step = this.#sorting.next();
        if (step.done) this.#rest = new IdWalk(this.source, step.value.values(), 0);
      } else if (this.#collector.step()) this.#sorting = this.#sortIds();
      else if (this.#collector.rows >= this.headStart) {
        const outcome = this.#runScan(visit);
        if (outcome !== 'behind') return outcome === 'ended';
      }
      if (slice.due()) return false;
    }
    return this.#rest.run(visit);
  }

  /** Lets the scan catch up with the collector. */
  #runScan(visit: Visit): 'ended' | 'stopped' | 'behind' {
    let left = this.#collector.rows - this.#scan.rows;
    if (left <= 0) return 'behind';
    let stopped = false;
    const ended = this.#scan.run((image) => {
      stopped = visit(image);
      return --left <= 0 || stopped;
    });
    if (ended) return 'ended';
    return stopped ? 'stopped' : 'behind';
  }

  /** The ids after the position of the scan, in order; a step at a time. */
  *#sortIds(): Generator<void, string[], void> {
    const { idDesc } = this;
    const passed = this.#scan.lastId ?? this.resumeId;
    const ahead: string[] = [];
    for (const id of this.#collector.ids) {
      if (passed !== undefined && (idDesc ? id >= passed : id <= passed)) continue;
      ahead.push(id);
      if (ahead.length % stepLength === 0) yield;
    }
    return yield* sortSteps(ahead, (a, b) => (a === b ? 0 : a < b !== idDesc ? -1 : 1));
  }
}
