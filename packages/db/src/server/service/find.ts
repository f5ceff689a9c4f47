import type { FindResponse, QueryPlan, Record } from '@millrace/contract/db';
import { checkCollectionName } from '../../engine/documents.js';
import type { FoundRecord } from '../../engine/query/page.js';
import { checkFind } from '../../engine/query/query.js';
import type { PlanReport } from '../../engine/query/source.js';
import type { Request, StreamingMethods } from './call.js';
import { ownIds } from './own-writes.js';
import type { ServiceParts } from './parts.js';
import { checkReadSeq, reachSeq } from './reach-seq.js';
import { recordMessage } from './records.js';
import { noteSlowQuery } from './slow-query.js';
import { stoppableFind } from './stoppable-queries.js';
import type { TransactionDesk } from './transactions.js';
import { wantsJson } from './values.js';

export function findMethod(parts: ServiceParts, desk: TransactionDesk): StreamingMethods['Find'] {
  return async function* findRecords(request, context) {
    checkCollectionName(request.collection);
    const json = wantsJson(request.encoding);
    const query = checkFind(findQuery(request));
    const { collection } = request;
    const transaction = desk.of(request.txId, context);
    if (transaction) checkReadSeq(transaction.readSeq, request.minSeq);
    else await reachSeq(parts, request.minSeq, context);
    const own = transaction && ownIds(parts.database, transaction, collection);
    const show = ({ image, parts: data }: FoundRecord): Record =>
      recordMessage(image, { json, data, seq: own?.has(image.id) ? 0 : undefined });

    const place = { collection, transaction, signal: context.signal };
    for await (const batch of stoppableFind(parts.database.core, place, query)) {
      const { records, end, readSeq } = batch;
      const message = findResponse(records.map(show), readSeq);
      if (end) {
        message.nextCursor = end.nextCursor;
        if (query.explain) message.plan = planMessage(end.plan);
        if (end.count !== undefined) message.count = BigInt(end.count);
        noteSlowQuery(parts, context, { method: 'Find', collection, query, plan: end.plan });
      }
      // Only the last message may be empty of records.
      if (end || records.length > 0) yield message;
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

function findResponse(records: Record[], readSeq: number): FindResponse {
  return {
    $typeName: 'millrace.db.v1.FindResponse',
    records,
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
