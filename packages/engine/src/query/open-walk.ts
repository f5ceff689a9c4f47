import { IdCollector, IndexWalk, type IndexPlace } from './index-walk.js';
import { sortSteps, type Position, type SortOrder } from './sort.js';
import type { Access, IndexAccess, Plan } from './plan.js';
import { IdWalk, ScanWalk, type Visit, type Walk, type WalkSource } from './walk.js';
import { EntryEncoder } from '../format/encoding.js';
import type { Json } from '../value/documents.js';

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

interface PageWanted {
  readonly order: SortOrder;
  /** After this position. */
  readonly resume: Position | undefined;
  /** Expected number of records, if known. */
  readonly wanted: number;
}

/** The records of a plan whose access path gives the order, or needs only its ids sorted. */
export function openInOrder(
  source: WalkSource,
  plan: Plan,
  { order, resume, wanted }: PageWanted,
): Walk {
  const { access, reverse } = plan;
  if (access.kind === 'scan') return new ScanWalk(source, reverse, undefined, resume?.id);
  if (access.kind === 'idRange') return new ScanWalk(source, reverse, access, resume?.id);
  if (access.kind === 'index' && plan.order === 'given') {
    const place = resume && placeOf(access, order, resume);
    const idsGrow = !order.idDesc;
    return new IndexWalk(source, access, { reverse, idsGrow, resume: place, wanted });
  }
  return new RaceWalk(source, access, order.idDesc, resume?.id);
}

/** The records of a plan, in any order. */
export async function openInAnyOrder(source: WalkSource, { access }: Plan): Promise<Walk> {
  switch (access.kind) {
    case 'scan':
      return new ScanWalk(source, false);
    case 'idRange':
      return new ScanWalk(source, false, access);
    case 'index':
      return new IndexWalk(source, access);
    case 'ids':
    case 'keys':
    case 'union': {
      const collector = new IdCollector(source, access);
      while (!collector.step()) if (source.slice.due()) await source.slice.pause();
      return new IdWalk(source, collector.ids.values(), collector.rows);
    }
  }
}

/** The place of a position in the index. */
function placeOf(access: IndexAccess, order: SortOrder, position: Position): IndexPlace {
  const { paths } = access.index.compiled;
  const encoder = new EntryEncoder(paths.length).begin();
  encoder.raw(access.constantValues);
  for (const path of paths.slice(access.constant)) {
    const at = order.keys.findIndex((key) => key.path.text === path.text);
    const value: Json | undefined = position.keys[at];
    if (value === undefined) encoder.value(undefined);
    else encoder.bound(value);
    if (encoder.cut) return { values: encoder.end(), id: position.id, cut: true };
  }
  return { values: encoder.end(), id: position.id, cut: false };
}
