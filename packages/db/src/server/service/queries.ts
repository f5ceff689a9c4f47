import type { CollectionInfo, Core } from '@millrace/engine/core/core';
import {
  aggregate,
  checkDistinct,
  distinct,
  type AggregateResult,
  type AggregateGroup,
} from '@millrace/engine/query/aggregate';
import { type CheckedAggregate, checkAggregate } from '@millrace/engine/query/aggregate-query';
import type { Condition } from '@millrace/engine/value/filter';
import { findInto, type FindBatch } from '@millrace/engine/query/find';
import { compilePredicate } from '@millrace/engine/value/predicate';
import { type CheckedFind, checkFind } from '@millrace/engine/query/query';
import type { RecordSink } from '@millrace/engine/query/page';
import type { Slice } from '@millrace/engine/core/slice';
import type { QuerySource, PlanReport } from '@millrace/engine/query/source';
import type { ReadView } from '@millrace/engine/storage/views';
import { foreignOf, searchReady } from '@millrace/engine/write/reads';
import type { Transaction } from '@millrace/engine/write/transactions';
import {
  type Abortable,
  type CallContext,
  type Request,
  type StreamingMethods,
  type UnaryMethods,
  MessageSink,
  WritingSink,
  type FoundRecords,
} from './call.js';
import type { SortOrder } from '@millrace/engine/query/sort';
import type { ServiceParts } from './parts.js';
import type {
  FindResponse,
  QueryPlan,
  AggregateGroup as GroupMessage,
  AggregateResponse,
} from '@millrace/contract/db';
import { fromJson, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { checkCollectionName, refuse } from '@millrace/engine/value/documents';
import { ownIds, checkReadSeq, reachSeq, type TransactionRegistry } from './writes.js';
import { badField, wantsJson, jsonBytes } from './records.js';

interface QueryPlace {
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
  if (query.search || query.near) await searchReady(core, place.collection);
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
  const foreign = foreignOf(core, transaction);
  const from = (view: ReadView): QuerySource => ({
    view,
    collection,
    now,
    slice,
    sortSpace,
    foreign,
  });
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

interface FinishedQuery {
  method: 'Find' | 'Aggregate' | 'Distinct';
  collection: string;
  query: { readonly condition: Condition; readonly order?: SortOrder | undefined };
  plan: PlanReport;
}

/** Logs a slow query with its plan, without the values of its filter, and counts it. */
function logSlowQuery(
  parts: Pick<ServiceParts, 'log' | 'slowQueryMs' | 'slowQueries' | 'clock'>,
  context: CallContext,
  { method, collection, query, plan }: FinishedQuery,
): void {
  if (parts.slowQueryMs === 0 || plan.elapsedMs < parts.slowQueryMs) return;
  const { condition, order } = query;
  const shape = [shapeOf(condition), ...orderShape(order)].filter((part) => part !== '');
  parts.slowQueries.record({
    collection,
    condition,
    order,
    plan,
    shape: shape.join(', '),
    endedAt: parts.clock.now(),
  });
  parts.log.warn(
    {
      method,
      collection,
      principal: context.principal.id,
      filter: shapeOf(condition),
      plan: {
        index: plan.index,
        rows_scanned: plan.rowsScanned,
        rows_returned: plan.rowsReturned,
        full_scan: plan.fullScan,
        sorted_in_memory: plan.sortedInMemory,
        elapsed_ms: Math.round(plan.elapsedMs * 100) / 100,
      },
    },
    'slow query',
  );
}

function orderShape(order: SortOrder | undefined): string[] {
  if (!order || order.keys.length === 0) return [];
  const keys = order.keys.map(({ path, desc }) => `${path.text}${desc ? ' desc' : ''}`);
  return [`order by ${keys.join(', ')}`];
}

/**
 * `(age gt and (name eq or name prefix))`: values are left out because they may be personal data.
 */
function shapeOf(condition: Condition): string {
  switch (condition.kind) {
    case 'all':
      return '';
    case 'and':
    case 'or':
      return `(${condition.parts.map(shapeOf).join(` ${condition.kind} `)})`;
    case 'not':
      return `not ${shapeOf(condition.part)}`;
    case 'test':
      return `${condition.field.text} ${condition.op}`;
  }
}

export function findMethod(
  parts: ServiceParts,
  transactions: TransactionRegistry,
): StreamingMethods['Find'] {
  return async function* findRecords(request, context) {
    checkCollectionName(request.collection);
    const json = wantsJson(request.encoding);
    const query = checkFind(findQuery(request));
    for (const { from } of query.lookups) context.principal.check(from, 'read');
    const { collection } = request;
    const transaction = transactions.of(request.txId, context);
    if (transaction) checkReadSeq(transaction.readSeq, request.minSeq);
    else await reachSeq(parts, request.minSeq, context);
    const own = transaction && ownIds(parts.database, transaction, collection);
    const view = { json, project: query.project, own };
    // Hits have a score, which record writers do not know.
    const writer = json && !query.search && !query.near ? context.recordWriter?.() : undefined;
    const sink = writer ? new WritingSink(writer, view) : new MessageSink(view);

    const place = { collection, transaction, caller: context };
    for await (const batch of stoppableFind(parts.database.core, place, query, sink)) {
      const { end } = batch;
      const message = findResponse(batch.records, batch.readSeq);
      if (end) {
        message.nextCursor = end.nextCursor;
        if (query.explain) message.plan = planMessage(end.plan);
        if (end.count !== undefined) message.count = BigInt(end.count);
        logSlowQuery(parts, context, { method: 'Find', collection, query, plan: end.plan });
      }
      yield message;
    }
  };
}

function findQuery(request: Request<'Find'>) {
  return {
    filter: request.filter ?? undefined,
    orderBy: request.orderBy.map(({ field, desc }) => ({ field, desc })),
    limit: request.limit,
    skip: request.skip,
    cursor: request.cursor,
    fields: request.fields,
    projection: request.projection && { exclude: request.projection.exclude },
    search: request.search && searchOf(request.search),
    near: request.near && nearOf(request.near),
    ...(request.offset !== 0 && { offset: request.offset }),
    lookup: request.lookup.map(lookupOf),
    explain: request.explain,
    countOnly: request.countOnly,
    allowFullScan: request.allowFullScan,
  };
}

function nearOf({ field, vector, k }: NonNullable<Request<'Find'>['near']>) {
  return { field, vector, k };
}

function searchOf(search: NonNullable<Request<'Find'>['search']>) {
  const { text, mode, fuzzy, highlight, fields } = search;
  return { text, ...(mode !== '' && { mode }), fuzzy, highlight, fields };
}

function findResponse(found: FoundRecords, readSeq: number): FindResponse & FoundRecords {
  return {
    $typeName: 'millrace.db.v1.FindResponse',
    ...found,
    nextCursor: '',
    readSeq: BigInt(readSeq),
  };
}

function planMessage(plan: PlanReport): QueryPlan {
  return {
    $typeName: 'millrace.db.v1.QueryPlan',
    index: plan.index,
    rowsScanned: BigInt(plan.rowsScanned),
    rowsReturned: BigInt(plan.rowsReturned),
    fullScan: plan.fullScan,
    sortedInMemory: plan.sortedInMemory,
    elapsedMs: plan.elapsedMs,
    ...(plan.note !== undefined && { note: plan.note }),
  };
}

const maxBatchGroups = 256;
const maxBatchBytes = 256 * 1024;
const noBytes = new Uint8Array(0);

export function aggregateMethod(
  parts: ServiceParts,
  transactions: TransactionRegistry,
): StreamingMethods['Aggregate'] {
  return async function* aggregateRecords(request, context) {
    checkCollectionName(request.collection);
    const json = wantsJson(request.encoding);
    const query = checkAggregate(aggregateQuery(request));
    for (const { from } of query.lookups) context.principal.check(from, 'read');
    const { collection } = request;
    const transaction = transactions.of(request.txId, context);
    if (transaction) checkReadSeq(transaction.readSeq, request.minSeq);
    else await reachSeq(parts, request.minSeq, context);

    const place = { collection, transaction, caller: context };
    const { groups, plan, readSeq } = await stoppableAggregate(parts.database.core, place, query);
    const { condition } = query;
    logSlowQuery(parts, context, { method: 'Aggregate', collection, query: { condition }, plan });
    let sent = 0;
    for (const batch of batchesOf(groups, json)) {
      sent += batch.length;
      const message: AggregateResponse = {
        $typeName: 'millrace.db.v1.AggregateResponse',
        groups: batch,
        readSeq: BigInt(readSeq),
      };
      if (request.explain && sent === groups.length) message.plan = planMessage(plan);
      yield message;
    }
  };
}

function aggregateQuery(request: Request<'Aggregate'>) {
  return {
    filter: request.filter ?? undefined,
    groupBy: groupsOf(request),
    aggregates: request.aggregates.map(({ name, op, field }) => ({
      name,
      op,
      ...(field !== '' && { field }),
    })),
    having: request.having ?? undefined,
    orderBy: request.orderBy.map(({ field, desc }) => ({ field, desc })),
    limit: request.limit,
    explain: request.explain,
    lookup: request.lookup.map(lookupOf),
  };
}

function lookupOf({ from, local, foreign, as, limit }: Request<'Find'>['lookup'][number]) {
  return { from, local, foreign, as, limit };
}

/** The paths, or the paths and expressions. */
function groupsOf({ groupBy, groupExpressions }: Request<'Aggregate'>): unknown[] {
  if (groupExpressions.length === 0) return groupBy;
  if (groupBy.length > 0) {
    throw refuse('BAD_REQUEST', 'Send group_by or group_expressions, not both.');
  }
  return groupExpressions.map(({ field, dateTrunc, bucket, as }) => {
    if (field !== '' && !dateTrunc && !bucket) return field;
    return {
      ...(dateTrunc && {
        dateTrunc: {
          field: dateTrunc.field,
          unit: dateTrunc.unit,
          ...(dateTrunc.zone !== '' && { zone: dateTrunc.zone }),
        },
      }),
      ...(bucket && {
        bucket: {
          field: bucket.field,
          edges: bucket.edges.map((edge) => toJson(ValueSchema, edge)),
        },
      }),
      ...(as !== '' && { as }),
    };
  });
}

export function distinctMethod(
  parts: ServiceParts,
  transactions: TransactionRegistry,
): UnaryMethods['Distinct'] {
  return async (request, context) => {
    const { collection, field, filter } = request;
    checkCollectionName(collection);
    if (field === '') throw badField('field', 'is missing');
    const query = checkDistinct({ field, ...(filter !== undefined && { filter }) });
    const transaction = transactions.of(request.txId, context);
    if (transaction) checkReadSeq(transaction.readSeq, request.minSeq);
    else await reachSeq(parts, request.minSeq, context);
    const place = { collection, transaction, caller: context };
    const { core } = parts.database;
    const slice = await sliceOf(core, place);
    const [source, done] = sourceOf(core, place, query.condition, slice);
    try {
      const { values, plan } = await distinct(source, query);
      const { condition } = query;
      logSlowQuery(parts, context, { method: 'Distinct', collection, query: { condition }, plan });
      return {
        $typeName: 'millrace.db.v1.DistinctResponse',
        values: values.map((value) => fromJson(ValueSchema, value)),
        readSeq: BigInt(source.view.seq),
      };
    } finally {
      done();
    }
  };
}

/** Always at least one batch, so that the stream reports `read_seq`. */
function* batchesOf(groups: readonly AggregateGroup[], json: boolean): Iterable<GroupMessage[]> {
  let batch: GroupMessage[] = [];
  let bytes = 0;
  for (const group of groups) {
    const keyJson = jsonBytes(group.key);
    const valuesJson = jsonBytes(group.values);
    const size = keyJson.length + valuesJson.length;
    if (batch.length === maxBatchGroups || (batch.length > 0 && bytes + size > maxBatchBytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    bytes += size;
    batch.push({
      $typeName: 'millrace.db.v1.AggregateGroup',
      count: BigInt(group.count),
      keyJson: json ? keyJson : noBytes,
      valuesJson: json ? valuesJson : noBytes,
      ...(!json && { key: group.key, values: group.values }),
    });
  }
  yield batch;
}
