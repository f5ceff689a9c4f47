import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { Record } from '@millrace/contract/db';
import { checkCollectionName, checkKey } from '@millrace/engine/value/documents';
import { notFoundById, notFoundByKey } from '@millrace/engine/write/mutations';
import { checkFind } from '@millrace/engine/query/query';
import type { RecordImage } from '@millrace/engine/format/record';
import type { Transaction } from '@millrace/engine/write/transactions';
import type { CallContext, Request, UnaryMethods } from './call.js';
import { ownIds, checkReadSeq, reachSeq, type TransactionRegistry } from './writes.js';
import type { ServiceParts } from './parts.js';
import { recordMessage, wantsJson } from './records.js';

type ReadRequest = Request<'FindById'> | Request<'FindByKey'>;

export function readMethods(
  parts: ServiceParts,
  transactions: TransactionRegistry,
): Pick<UnaryMethods, 'FindById' | 'FindByKey'> {
  /** Reads a record in the requested snapshot and projects the requested fields. */
  function read(
    request: ReadRequest,
    context: CallContext,
    find: (transaction: Transaction | undefined) => RecordImage | undefined,
    missing: () => Error,
  ): Record | Promise<Record> {
    checkCollectionName(request.collection);
    const json = wantsJson(request.encoding);
    const { fields } = request;
    const project = fields.length > 0 ? checkFind({ fields }).project : undefined;
    const transaction = transactions.of(request.txId, context);
    const readRecord = (): Record => {
      const image = find(transaction);
      if (!image) throw missing();
      const own = transaction && ownIds(parts.database, transaction, request.collection);
      return recordMessage(image, {
        json,
        data: project?.(image),
        seq: own?.has(image.id) ? 0 : undefined,
      });
    };
    if (transaction) checkReadSeq(transaction.readSeq, request.minSeq);
    // Most reads need not wait.
    else if (request.minSeq !== 0n)
      return reachSeq(parts, request.minSeq, context).then(readRecord);
    return readRecord();
  }

  return {
    FindById: (request, context) => {
      const { collection, id } = request;
      const record = read(
        request,
        context,
        // An invalid id matches no record.
        (transaction) =>
          isUlid(id)
            ? parts.database.reads.byId(collection, normalizeUlid(id), transaction)
            : undefined,
        () => notFoundById(collection, id),
      );
      return answered('millrace.db.v1.FindByIdResponse', record);
    },
    FindByKey: (request, context) => {
      const { collection, key } = request;
      checkKey(key);
      const record = read(
        request,
        context,
        (transaction) => parts.database.reads.byKey(collection, key, transaction),
        () => notFoundByKey(collection, key),
      );
      return answered('millrace.db.v1.FindByKeyResponse', record);
    },
  };
}

function answered<Name extends string>($typeName: Name, record: Record | Promise<Record>) {
  if (!(record instanceof Promise)) return { $typeName, record };
  return record.then((found) => ({ $typeName, record: found }));
}
