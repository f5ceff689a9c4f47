import type { ReadView } from '../storage/views.js';
import type { RecordImage } from '../format/record.js';
import { openInAnyOrder } from './open-walk.js';
import type { Plan } from './plan.js';
import type { QueryIndex } from './ranges.js';
import type { Slice } from '../core/slice.js';
import type { SortSpace } from '../storage/sort-space.js';
import type { WalkSource } from './walk.js';

/** A transaction's own writes of one collection: the new record, or null for a deleted one. */
export type Overlay = ReadonlyMap<string, RecordImage | null>;

export interface QuerySource {
  readonly view: ReadView;
  readonly collection: {
    readonly id: number;
    readonly name: string;
    readonly indexes: readonly QueryIndex[];
  };
  /** Milliseconds since the epoch. Records that have expired by then are not found. */
  readonly now: number;
  readonly slice: Slice;
  readonly sortSpace: SortSpace;
  /** Records that replace those of the view. */
  readonly overlay?: Overlay | undefined;
  /** Another collection in the same snapshot, for lookups; undefined: it has no records. */
  readonly foreign?: (name: string) => ForeignCollection | undefined;
  /** The query has lookups. */
  readonly readsOthers?: boolean | undefined;
}

/** The collection that a lookup reads. */
export interface ForeignCollection {
  readonly id: number;
  readonly indexes: readonly QueryIndex[];
  readonly overlay?: Overlay | undefined;
}

/** How a query was executed. */
export interface PlanReport {
  /** Fields of the index, separated by commas; "" when the whole collection was read. */
  readonly index: string;
  /** Rows read, from an index or the collection. */
  readonly rowsScanned: number;
  readonly rowsReturned: number;
  readonly fullScan: boolean;
  /** No index gave the order. */
  readonly sortedInMemory: boolean;
  /** Working time, without waiting for other queries or the caller. */
  readonly elapsedMs: number;
  /** What the result does not show otherwise. */
  readonly note?: string;
}

export function walkSource(source: QuerySource): WalkSource {
  const { view, collection, now, slice, overlay, readsOthers } = source;
  const hidden = overlay && overlay.size > 0 ? overlay : undefined;
  return { view, collection: collection.id, now, slice, hidden, readsOthers };
}

/** The source for a query with these lookups. */
export function sourceWith(source: QuerySource, lookups: readonly unknown[]): QuerySource {
  return lookups.length === 0 ? source : { ...source, readsOthers: true };
}

/** The records of the overlay that are not deleted or expired. */
export function overlaid({ overlay, now }: QuerySource): RecordImage[] {
  const images = [...(overlay?.values() ?? [])];
  return images.filter((image) => image !== null && !image.isExpired(now)) as RecordImage[];
}

/**
 * Calls `visit` with every record of the plan, in any order; returns the number of rows read. When
 * `visit` returns true, `rest` is awaited before the next record.
 */
export async function visitAll(
  source: QuerySource,
  plan: Plan,
  visit: (image: RecordImage) => boolean,
  rest?: () => Promise<void>,
): Promise<number> {
  const walk = await openInAnyOrder(walkSource(source), plan);
  let isRestDue = false;
  const visitOne = (image: RecordImage) => (isRestDue = visit(image));
  for (let ended = false; !ended;) {
    ended = walk.run(visitOne);
    if (isRestDue) await rest?.();
    isRestDue = false;
    if (!ended && source.slice.due()) await source.slice.pause();
  }
  for (const image of overlaid(source)) if (visit(image)) await rest?.();
  return walk.rows;
}

export function reportOf(
  plan: Plan,
  rowsScanned: number,
  rowsReturned: number,
  slice: Slice,
): PlanReport {
  return {
    index: plan.indexName,
    rowsScanned,
    rowsReturned,
    fullScan: plan.access.kind === 'scan',
    sortedInMemory: plan.order !== 'given',
    elapsedMs: slice.elapsedMs,
  };
}
