import type { CollectionInfo, Core } from '../core/core.js';
import { ScanWalk } from '../query/walk.js';
import type { RecordImage } from '../format/record.js';
import type { SnapshotView } from '../storage/views.js';
import type { RecordFilter, VisibleChange } from './message.js';

const maxBatchRecords = 256;
const maxBatchBytes = 256 * 1024;

export interface InitialWanted {
  /** Absent: all. */
  collection: string | undefined;
  filter: RecordFilter | undefined;
  /** Checked after every pause. */
  isOver: () => boolean;
}

/** The records of a snapshot, in batches, each as an insert. */
export async function* initialBatches(
  core: Core,
  view: SnapshotView,
  wanted: InitialWanted,
): AsyncGenerator<VisibleChange[], void, void> {
  const { collection } = wanted;
  const known = collection === undefined ? undefined : core.catalog.find(collection);
  const collections = collection === undefined ? core.catalog.all() : known ? [known] : [];
  for (const each of collections) yield* batchesOf(core, view, each, wanted);
}

async function* batchesOf(
  core: Core,
  view: SnapshotView,
  collection: CollectionInfo,
  { filter, isOver }: InitialWanted,
): AsyncGenerator<VisibleChange[], void, void> {
  const slice = core.newSlice();
  const now = core.clock.now();
  const walk = new ScanWalk({ view, collection: collection.id, now, slice }, false);
  let batch: VisibleChange[] = [];
  let bytes = 0;
  const visit = (found: RecordImage): boolean => {
    if (filter && !filter(found)) return false;
    const image = found.keep();
    batch.push(asInsert(collection.name, image));
    bytes += image.end;
    return batch.length >= maxBatchRecords || bytes >= maxBatchBytes;
  };
  for (let ended = false; !ended && !isOver();) {
    ended = walk.run(visit);
    if (batch.length >= maxBatchRecords || bytes >= maxBatchBytes || ended) {
      if (batch.length > 0) yield batch;
      batch = [];
      bytes = 0;
    }
    if (slice.due()) await slice.pause();
  }
}

function asInsert(collection: string, after: RecordImage): VisibleChange {
  const { id, seq } = after;
  return { op: 'insert', collection, id, seq, after, entered: false, left: false };
}
