import type { CollectionInfo } from '@millrace/engine/core/catalog';
import type { Core } from '@millrace/engine/core/core';
import { aggregate, type AggregateResult } from '@millrace/engine/query/aggregate';
import type { CheckedAggregate } from '@millrace/engine/query/aggregate-query';
import type { Condition } from '@millrace/engine/query/filter';
import { findInto, type FindBatch } from '@millrace/engine/query/find';
import { compilePredicate } from '@millrace/engine/query/predicate';
import type { CheckedFind } from '@millrace/engine/query/query';
import type { RecordSink } from '@millrace/engine/query/record-sink';
import type { Slice } from '@millrace/engine/core/slice';
import type { QuerySource } from '@millrace/engine/query/source';
import type { ReadView } from '@millrace/engine/storage/read-view';
import type { Transaction } from '@millrace/engine/write/transactions';
import type { Abortable } from './call.js';

export interface QueryPlace {
  collection: string;
  transaction: Transaction | undefined;
  /** Aborted when nobody wants the result any more. */
  caller: Pick<Abortable, 'throwIfAborted'>;
}

/** Like the engine's find, but an abort stops it within milliseconds. */
export async function* stoppableFind<Records>(
  core: Core,
  place: QueryPlace,
  query: CheckedFind,
  sink: RecordSink<Records>,
): AsyncGenerator<FindBatch<Records> & { readSeq: number }, void, void> {
  const slice = await sliceOf(core, place);
  const [source, done] = sourceOf(core, place, query.condition, slice);
  try {
    const readSeq = source.view.seq;
    for await (const { records, end } of findInto(source, query, sink)) {
      place.caller.throwIfAborted();
      yield { records, end, readSeq };
    }
  } finally {
    done();
  }
}

export async function stoppableAggregate(
  core: Core,
  place: QueryPlace,
  query: CheckedAggregate,
): Promise<AggregateResult & { readSeq: number }> {
  const slice = await sliceOf(core, place);
  const [source, done] = sourceOf(core, place, query.condition, slice);
  try {
    return { ...(await aggregate(source, query)), readSeq: source.view.seq };
  } finally {
    done();
  }
}

/** Waits for its turn before a snapshot is taken: waiting queries must not hold as many of them. */
async function sliceOf(core: Core, { transaction, caller }: QueryPlace): Promise<Slice> {
  const slice = core.newSlice(() => caller.throwIfAborted());
  if (!transaction) await slice.begin();
  return slice;
}

function sourceOf(
  core: Core,
  { collection: name, transaction }: QueryPlace,
  condition: Condition,
  slice: Slice,
): [QuerySource, () => void] {
  const { clock, sortSpace } = core;
  // A collection without any write is treated as empty.
  const collection: CollectionInfo = core.catalog.find(name) ?? {
    id: 0,
    name,
    indexes: [],
    defaultTtlMs: 0,
    schema: undefined,
    isDropped: false,
  };
  const now = clock.now();
  const from = (view: ReadView): QuerySource => ({ view, collection, now, slice, sortSpace });
  if (!transaction) {
    const view = core.snapshot();
    return [from(view), () => view.done()];
  }
  transaction.use();
  // Records the collection for conflict detection: the result must still hold at commit.
  transaction.notePredicate({ collection: name, matches: compilePredicate(condition) });
  const overlay = transaction.overlay(collection.id);
  const seen = { ...collection, indexes: transaction.usableIndexes(collection) };
  return [{ ...from(transaction.view), collection: seen, overlay }, () => undefined];
}
