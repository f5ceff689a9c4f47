import type { UpdateMode as EngineMode } from '@millrace/engine/value/documents';
import type { Outcome } from '@millrace/engine/write/requests';
import type { CallOptions } from '@millrace/engine/write/writes';
import type { Record } from '@millrace/contract/db';
import type { Address } from '@millrace/engine/write/operations';
import { refuse } from '@millrace/engine/value/refusal';
import type { CallContext, Request, UnaryMethods } from './call.js';
import type { ServiceParts } from './parts.js';
import { documentOf, recordMessage } from './records.js';
import type { TransactionRegistry } from './transactions.js';
import { badField, durationMs, engineMode, wantsJson, wholeNumber } from './values.js';

type WriteMethods = Pick<
  UnaryMethods,
  | 'Insert'
  | 'InsertWithKey'
  | 'Update'
  | 'UpdateByKey'
  | 'Upsert'
  | 'UpdateIfRev'
  | 'Delete'
  | 'DeleteByKey'
>;

/** Fields common to all writes. */
interface WriteRequest {
  readonly ttl?: Request<'Insert'>['ttl'];
  readonly txId: string;
  readonly requestId: string;
  readonly encoding: Request<'Insert'>['encoding'];
}

/** Write options for the engine. Always the same shape, for speed. */
interface WriteOptions extends CallOptions {
  readonly id: string | undefined;
  readonly key: string | undefined;
  readonly mode: EngineMode | undefined;
}

export function writeMethods(parts: ServiceParts, transactions: TransactionRegistry): WriteMethods {
  const { replication } = parts;

  /** Refuses invalid options before anything is written. */
  function prepare(
    request: WriteRequest,
    context: CallContext,
    place: { id?: string; key?: string; mode?: EngineMode } = {},
  ): WriteOptions {
    wantsJson(request.encoding);
    replication.checkWritable();
    return {
      transaction: transactions.of(request.txId, context),
      ttlMs: durationMs(request.ttl, 'ttl'),
      requestId: request.requestId,
      // The document comes from the request, which is not used again.
      isDataOwn: true,
      id: place.id === '' ? undefined : place.id,
      key: place.key,
      mode: place.mode,
    };
  }

  /** Responds when the commit is on disk and, with min_acks, on enough followers. */
  function settled<Answer>(
    write: Promise<Outcome>,
    { transaction }: WriteOptions,
    context: CallContext,
    answer: (outcome: Outcome) => Answer,
  ): Promise<Answer> {
    return write.then((outcome) => {
      const confirmed = transaction ? undefined : replication.confirmed(outcome.seq, context);
      return confirmed ? confirmed.then(() => answer(outcome)) : answer(outcome);
    });
  }

  function shown({ encoding }: WriteRequest, options: WriteOptions, { record }: Outcome): Record {
    const seq = options.transaction ? 0 : undefined;
    return recordMessage(record!, { json: wantsJson(encoding), seq });
  }

  function insert<Answer>(
    request: Request<'Insert'> | Request<'InsertWithKey'>,
    options: WriteOptions,
    context: CallContext,
    answer: (record: Record) => Answer,
  ): Promise<Answer> {
    const { collection } = request;
    const write = parts.database.writes.insert(collection, documentOf(request), options);
    return settled(write, options, context, (outcome) => answer(shown(request, options, outcome)));
  }

  function remove(
    request: Request<'Delete'> | Request<'DeleteByKey'>,
    address: Address,
    context: CallContext,
  ): Promise<{ seq: bigint; record?: Record }> {
    const options = prepare(request, context);
    const write = parts.database.writes.remove(request.collection, address, options);
    return settled(write, options, context, (outcome) => {
      const seq = BigInt(outcome.seq);
      return request.returnRecord ? { seq, record: shown(request, options, outcome) } : { seq };
    });
  }

  function update(
    request: Request<'Update'> | Request<'UpdateByKey'>,
    address: Address,
    context: CallContext,
  ): Promise<Record> {
    const { collection } = request;
    const options = prepare(request, context, { mode: engineMode(request.mode) });
    const write = parts.database.writes.update(collection, address, documentOf(request), options);
    return settled(write, options, context, (outcome) => shown(request, options, outcome));
  }

  return {
    Insert: (request, context) => {
      const options = prepare(request, context, { id: request.id });
      return insert(request, options, context, (record) => ({
        $typeName: 'millrace.db.v1.InsertResponse',
        record,
      }));
    },
    InsertWithKey: (request, context) => {
      const { id, key } = request;
      return insert(request, prepare(request, context, { id, key }), context, (record) => ({
        $typeName: 'millrace.db.v1.InsertWithKeyResponse',
        record,
      }));
    },
    Update: async (request, context) => {
      const record = await update(request, { id: request.id }, context);
      return { $typeName: 'millrace.db.v1.UpdateResponse', record };
    },
    UpdateByKey: async (request, context) => {
      const record = await update(request, { key: request.key }, context);
      return { $typeName: 'millrace.db.v1.UpdateByKeyResponse', record };
    },
    Upsert: (request, context) => {
      const { collection, key } = request;
      const options = prepare(request, context, { mode: engineMode(request.mode) });
      const write = parts.database.writes.upsert(collection, key, documentOf(request), options);
      return settled(write, options, context, (outcome) => ({
        $typeName: 'millrace.db.v1.UpsertResponse',
        record: shown(request, options, outcome),
        created: outcome.created,
      }));
    },
    UpdateIfRev: (request, context) => {
      const mode = engineMode(request.mode);
      const address = eitherAddress(request);
      const rev = wholeNumber(request.expectedRev, 'expected_rev');
      const options = prepare(request, context, { mode });
      const { writes } = parts.database;
      const document = documentOf(request);
      const write = writes.updateIfRev(request.collection, address, rev, document, options);
      return settled(write, options, context, (outcome) => ({
        $typeName: 'millrace.db.v1.UpdateIfRevResponse',
        record: shown(request, options, outcome),
      }));
    },
    Delete: async (request, context) => ({
      $typeName: 'millrace.db.v1.DeleteResponse',
      ...(await remove(request, { id: request.id }, context)),
    }),
    DeleteByKey: async (request, context) => ({
      $typeName: 'millrace.db.v1.DeleteByKeyResponse',
      ...(await remove(request, { key: request.key }, context)),
    }),
  };
}

function eitherAddress({ id, key }: { id: string; key: string }): Address {
  if (id !== '' && key !== '') throw refuse('BAD_REQUEST', 'Send key or id, not both.');
  if (id === '' && key === '') throw badField('key', 'is missing: send key or id');
  return id === '' ? { key } : { id };
}
