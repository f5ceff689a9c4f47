import { EntryEncoder } from '../format/encoding.js';
import type { Json } from '../value/documents.js';
import { IdCollector } from './collect-ids.js';
import { IndexWalk, type IndexPlace } from './index-walk.js';
import type { IndexAccess, Plan } from './plan.js';
import { RaceWalk } from './race-walk.js';
import type { Position, SortOrder } from './sort.js';
import { IdWalk, ScanWalk, type Walk, type WalkSource } from './walk.js';

export interface PageWanted {
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
