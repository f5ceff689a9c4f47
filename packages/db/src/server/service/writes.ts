import type { Outcome } from '../../engine/requests.js';
import type { CallOptions } from '../../engine/writes.js';
import type { Record } from '@millrace/contract/db';
import type { Address } from '../../engine/operations.js';
import { refuse } from '../../engine/refusal.js';
import type { CallContext, Request, UnaryMethods } from './call.js';
import type { ServiceParts } from './parts.js';
import { documentOf, recordMessage } from './records.js';
import type { TransactionDesk } from './transactions.js';
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

/** What every write may carry. */
interface WriteRequest {
  readonly ttl?: Request<'Insert'>['ttl'];
  readonly txId: string;
  readonly requestId: string;
  readonly encoding: Request<'Insert'>['encoding'];
}

export function writeMethods(parts: ServiceParts, desk: TransactionDesk): WriteMethods {
  const { replication } = parts;

  /** Runs a write; its answer waits for the disk, and for followers where they are asked for. */
  async function run(
    request: WriteRequest,
    context: CallContext,
    write: (options: CallOptions) => Promise<Outcome>,
  ): Promise<Outcome & { shown: () => Record }> {
    const json = wantsJson(request.encoding);
    replication.checkWritable();
    const transaction = desk.of(request.txId, context);
    const outcome = await write({
      ttlMs: durationMs(request.ttl, 'ttl'),
      requestId: request.requestId,
      transaction,
    });
    const confirmed = transaction ? undefined : replication.confirmed(outcome.seq, context);
    if (confirmed) await confirmed;
    const seq = transaction ? 0 : undefined;
    return { ...outcome, shown: () => recordMessage(outcome.record!, { json, seq }) };
  }

  async function remove(
    request: Request<'Delete'> | Request<'DeleteByKey'>,
    address: Address,
    context: CallContext,
  ) {
    const { seq, shown } = await run(request, context, (options) =>
      parts.database.writes.remove(request.collection, address, options),
    );
    const answer = { seq: BigInt(seq) };
    return request.returnRecord ? { ...answer, record: shown() } : answer;
  }

  async function update(
    request: Request<'Update'> | Request<'UpdateByKey'>,
    address: Address,
    context: CallContext,
  ) {
    const mode = engineMode(request.mode);
    const { shown } = await run(request, context, (options) =>
      parts.database.writes.update(request.collection, address, documentOf(request), {
        ...options,
        mode,
      }),
    );
    return shown();
  }

  return {
    Insert: async (request, context) => {
      const id = request.id === '' ? undefined : request.id;
      const { shown } = await run(request, context, (options) =>
        parts.database.writes.insert(request.collection, documentOf(request), { ...options, id }),
      );
      return { $typeName: 'millrace.db.v1.InsertResponse', record: shown() };
    },
    InsertWithKey: async (request, context) => {
      const { key } = request;
      const id = request.id === '' ? undefined : request.id;
      const { shown } = await run(request, context, (options) =>
        parts.database.writes.insert(request.collection, documentOf(request), {
          ...options,
          id,
          key,
        }),
      );
      return { $typeName: 'millrace.db.v1.InsertWithKeyResponse', record: shown() };
    },
    Update: async (request, context) => {
      const record = await update(request, { id: request.id }, context);
      return { $typeName: 'millrace.db.v1.UpdateResponse', record };
    },
    UpdateByKey: async (request, context) => {
      const record = await update(request, { key: request.key }, context);
      return { $typeName: 'millrace.db.v1.UpdateByKeyResponse', record };
    },
    Upsert: async (request, context) => {
      const mode = engineMode(request.mode);
      const { shown, created } = await run(request, context, (options) =>
        parts.database.writes.upsert(request.collection, request.key, documentOf(request), {
          ...options,
          mode,
        }),
      );
      return { $typeName: 'millrace.db.v1.UpsertResponse', record: shown(), created };
    },
    UpdateIfRev: async (request, context) => {
      const mode = engineMode(request.mode);
      const address = eitherAddress(request);
      const rev = wholeNumber(request.expectedRev, 'expected_rev');
      const { shown } = await run(request, context, (options) =>
        parts.database.writes.updateIfRev(request.collection, address, rev, documentOf(request), {
          ...options,
          mode,
        }),
      );
      return { $typeName: 'millrace.db.v1.UpdateIfRevResponse', record: shown() };
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
