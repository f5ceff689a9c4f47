import type { FindResponse, QueryPlan } from '@millrace/contract/db';
import { checkCollectionName } from '@millrace/engine/value/documents';
import { checkFind } from '@millrace/engine/query/query';
import type { PlanReport } from '@millrace/engine/query/source';
import type { Request, StreamingMethods } from './call.js';
import { MessageSink, WritingSink, type FoundRecords } from './found-records.js';
import { ownIds } from './own-writes.js';
import type { ServiceParts } from './parts.js';
import { checkReadSeq, reachSeq } from './reach-seq.js';
import { logSlowQuery } from './slow-query.js';
import { stoppableFind } from './stoppable-queries.js';
import type { TransactionRegistry } from './transactions.js';
import { wantsJson } from './values.js';

export function findMethod(
  parts: ServiceParts,
  transactions: TransactionRegistry,
): StreamingMethods['Find'] {
  return async function* findRecords(request, context) {
    checkCollectionName(request.collection);
    const json = wantsJson(request.encoding);
    const query = checkFind(findQuery(request));
    const { collection } = request;
    const transaction = transactions.of(request.txId, context);
    if (transaction) checkReadSeq(transaction.readSeq, request.minSeq);
    else await reachSeq(parts, request.minSeq, context);
    const own = transaction && ownIds(parts.database, transaction, collection);
    const view = { json, project: query.project, own };
    const writer = json ? context.recordWriter?.() : undefined;
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
    explain: request.explain,
    countOnly: request.countOnly,
    allowFullScan: request.allowFullScan,
  };
}

function findResponse(found: FoundRecords, readSeq: number): FindResponse & FoundRecords {
  return {
    $typeName: 'millrace.db.v1.FindResponse',
    ...found,
    nextCursor: '',
    readSeq: BigInt(readSeq),
  };
}

export function planMessage(plan: PlanReport): QueryPlan {
  return {
    $typeName: 'millrace.db.v1.QueryPlan',
    index: plan.index,
    rowsScanned: BigInt(plan.rowsScanned),
    rowsReturned: BigInt(plan.rowsReturned),
    fullScan: plan.fullScan,
    sortedInMemory: plan.sortedInMemory,
    elapsedMs: plan.elapsedMs,
  };
}
