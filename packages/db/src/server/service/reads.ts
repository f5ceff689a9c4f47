import { isUlid, normalizeUlid } from '@millrace/kit/ulid';
import type { Record } from '@millrace/contract/db';
import { checkCollectionName, checkKey } from '../../engine/documents.js';
import { notFoundById, notFoundByKey } from '../../engine/operations.js';
import { checkFind } from '../../engine/query/query.js';
import type { RecordImage } from '../../engine/record.js';
import type { Transaction } from '../../engine/transactions.js';
import type { CallContext, Request, UnaryMethods } from './call.js';
import { ownIds } from './own-writes.js';
import type { ServiceParts } from './parts.js';
import { checkReadSeq, reachSeq } from './reach-seq.js';
import { recordMessage } from './records.js';
import type { TransactionDesk } from './transactions.js';
import { wantsJson } from './values.js';

type ReadRequest = Request<'FindById'> | Request<'FindByKey'>;

export function readMethods(
  parts: ServiceParts,
  desk: TransactionDesk,
): Pick<UnaryMethods, 'FindById' | 'FindByKey'> {
  /** Looks a record up at the state the request asks for, and shows what it asks for. */
  async function read(
    request: ReadRequest,
    context: CallContext,
    find: (transaction: Transaction | undefined) => RecordImage | undefined,
    missing: () => Error,
  ): Promise<Record> {
    checkCollectionName(request.collection);
    const json = wantsJson(request.encoding);
    const { fields } = request;
    const project = fields.length > 0 ? checkFind({ fields }).project : undefined;
    const transaction = desk.of(request.txId, context);
    if (transaction) checkReadSeq(transaction.readSeq, request.minSeq);
    else if (request.minSeq !== 0n) await reachSeq(parts, request.minSeq, context);
    const image = find(transaction);
    if (!image) throw missing();
    const own = transaction && ownIds(parts.database, transaction, request.collection);
    return recordMessage(image, {
      json,
      data: project?.(image.data),
      seq: own?.has(image.id) ? 0 : undefined,
    });
  }

  return {
    FindById: async (request, context) => {
      const { collection, id } = request;
      const record = await read(
        request,
        context,
        // What cannot be an id names no record either.
        (transaction) =>
          isUlid(id)
            ? parts.database.reads.byId(collection, normalizeUlid(id), transaction)
            : undefined,
        () => notFoundById(collection, id),
      );
      return { $typeName: 'millrace.db.v1.FindByIdResponse', record };
    },
    FindByKey: async (request, context) => {
      const { collection, key } = request;
      checkKey(key);
      const record = await read(
        request,
        context,
        (transaction) => parts.database.reads.byKey(collection, key, transaction),
        () => notFoundByKey(collection, key),
      );
      return { $typeName: 'millrace.db.v1.FindByKeyResponse', record };
    },
  };
}
