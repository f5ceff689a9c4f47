import type { AggregateGroup as GroupMessage, AggregateResponse } from '@millrace/contract/db';
import { checkCollectionName } from '@millrace/engine/value/documents';
import type { AggregateGroup } from '@millrace/engine/query/aggregate';
import { checkAggregate } from '@millrace/engine/query/aggregate-query';
import type { Request, StreamingMethods } from './call.js';
import { planMessage } from './find.js';
import type { ServiceParts } from './parts.js';
import { checkReadSeq, reachSeq } from './reach-seq.js';
import { jsonBytes } from './records.js';
import { logSlowQuery } from './slow-query.js';
import { stoppableAggregate } from './stoppable-queries.js';
import type { TransactionRegistry } from './transactions.js';
import { wantsJson } from './values.js';

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
    groupBy: request.groupBy,
    aggregates: request.aggregates.map(({ name, op, field }) => ({
      name,
      op,
      ...(field !== '' && { field }),
    })),
    having: request.having ?? undefined,
    orderBy: request.orderBy.map(({ field, desc }) => ({ field, desc })),
    limit: request.limit,
    explain: request.explain,
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
