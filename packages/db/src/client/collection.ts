import {
  Database,
  DataEncoding,
  UpdateMode as WireMode,
  type FindResponse,
} from '@millrace/contract/db';
import { toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { Collection } from '@millrace/engine/api/collection';
import type {
  ChangeCall,
  CollectionPort,
  FoundBatch,
  GetCall,
  ReadCall,
  WriteCall,
} from '@millrace/engine/api/collection-port';
import type { AggregateGroup } from '@millrace/engine/query/aggregate';
import type { StoredRecord } from '@millrace/engine/format/record';
import { checkKey, type JsonObject } from '@millrace/engine/value/documents';
import type { Address } from '@millrace/engine/write/mutations';
import { Refusal } from '@millrace/kit/errors';
import { bulkWrite, deleteMany, updateMany } from './bulk.js';
import { live, type RemoteLiveQuery } from './live.js';
import { aggregateRequest, filterMember, findRequest, planOf, textsOf } from './queries.js';
import {
  decodeJson,
  encodeData,
  encodeUpdate,
  toDeleted,
  toStored,
  ttlOf,
  uint64Of,
} from './records.js';
import type { CallOptions, Session } from './session.js';
import { ResumingWatch, type RemoteWatchOptions } from './watch.js';

/** What calls over a connection take besides. */
interface RemoteKinds {
  read: CallOptions & {
    /** Reads at this commit or later; a follower waits for it. */
    minSeq?: number | undefined;
  };
  write: CallOptions;
  watch: Pick<RemoteWatchOptions, 'reconnectForMs' | 'onCut' | 'prefer'>;
  live: Pick<RemoteLiveQuery, 'reconnectForMs' | 'onCut'>;
}

export type RemoteRead = ReadCall & RemoteKinds['read'];
export type RemoteGet<F extends string = string> = GetCall<F> & RemoteKinds['read'];
export type RemoteWrite = WriteCall & RemoteKinds['write'];

/** A collection of a remote database. */
export class RemoteCollection<T extends object, In extends object = T> extends Collection<
  T,
  In,
  RemoteKinds
> {}

const { method: rpc } = Database;

/** The calls of a collection over a connection. */
export function collectionPort(session: Session): CollectionPort<RemoteKinds> {
  return {
    owner: session,
    ownerName: 'connection',
    now: () => session.clock.now(),
    async insert(name, data, options) {
      const { key, id = '' } = options;
      const body = bodyOf(session, name, data, options);
      const { record } =
        key === undefined
          ? await session.write(rpc.insert, { ...body, id }, options)
          : await session.write(rpc.insertWithKey, { ...body, key: checked(key) }, options);
      return toStored(record);
    },
    async get(name, address, options) {
      const request = { ...readOf(name, options), fields: textsOf(options.fields, 'fields') };
      if ('key' in address) {
        const call = session.call(
          rpc.findByKey,
          { ...request, key: checked(address.key) },
          options,
        );
        return orNothing(call, 'KEY_NOT_FOUND');
      }
      if (address.id === '') return undefined;
      const call = session.call(rpc.findById, { ...request, id: address.id }, options);
      return orNothing(call, 'RECORD_NOT_FOUND');
    },
    async update(name, address, data, { expectedRev, ...options }) {
      const body = changedBody(session, name, data, options);
      if (expectedRev !== undefined) {
        const rev = uint64Of(expectedRev, 'expected_rev');
        const request = { ...body, ...checkedAddress(address), expectedRev: rev };
        return toStored((await session.write(rpc.updateIfRev, request, options)).record);
      }
      const { record } =
        'key' in address
          ? await session.write(rpc.updateByKey, { ...body, key: checked(address.key) }, options)
          : await session.write(rpc.update, { ...body, id: address.id }, options);
      return toStored(record);
    },
    async upsert(name, key, data, options) {
      const request = { ...changedBody(session, name, data, options), key: checked(key) };
      const { record, created } = await session.write(rpc.upsert, request, options);
      return { record: toStored(record), created };
    },
    async delete(name, address, options) {
      const request = { ...changeOf(session, name, options), returnRecord: true };
      return toDeleted(
        'key' in address
          ? await session.write(rpc.deleteByKey, { ...request, key: checked(address.key) }, options)
          : await session.write(rpc.delete, { ...request, id: address.id }, options),
      );
    },
    async insertMany<T>(name: string, documents: readonly object[], options: RemoteWrite) {
      const { ttlMs, ...call } = options;
      const { results } = await bulkWrite<T>(
        session,
        name,
        documents.map((data) => ({ insert: { data, ttlMs } })),
        { ...call, atomic: !call.transaction, ordered: true, returnRecords: true },
      );
      return results.map(({ error, record }) => {
        if (error) throw new Refusal(error.reason, error.message);
        if (record) return record;
        throw new Refusal('REQUEST_ID_REUSED', 'The records of this request have changed since.');
      });
    },
    bulkWrite: (name, operations, options) => bulkWrite(session, name, operations, options),
    updateMany: (name, filter, patch, options) =>
      updateMany(session, name, { filter, patch }, options),
    deleteMany: (name, filter, options) => deleteMany(session, name, filter, options),
    async *find<T>(
      name: string,
      query: object,
      options: RemoteRead,
    ): AsyncGenerator<FoundBatch<T>, void, void> {
      const request = { ...findRequest(query), ...readOf(name, options) };
      for await (const reply of session.stream(rpc.find, request, options)) {
        yield foundBatch<T>(reply);
      }
    },
    async aggregate(name, query, options) {
      const request = { ...aggregateRequest(query), ...readOf(name, options) };
      const groups: AggregateGroup[] = [];
      let readSeq = 0;
      let plan;
      for await (const reply of session.stream(rpc.aggregate, request, options)) {
        for (const { keyJson, valuesJson, count } of reply.groups) {
          const key = decodeJson(keyJson) as JsonObject;
          groups.push({ key, count: Number(count), values: decodeJson(valuesJson) as JsonObject });
        }
        readSeq = Number(reply.readSeq);
        if (reply.plan) plan = planOf(reply.plan);
      }
      if (!plan) throw new Error('The server sent an aggregate response without a plan');
      return { groups, plan, readSeq };
    },
    async distinct(name, query, options) {
      const { encoding: _, ...read } = readOf(name, options);
      const request = { ...read, field: query.field, ...filterMember('filter', query.filter) };
      const { values } = await session.call(rpc.distinct, request, options);
      return values.map((value) => toJson(ValueSchema, value));
    },
    watch: <T>(name: string, options: object) =>
      new ResumingWatch<T & object>(session, name, options),
    live: <T>(name: string, query: object) => live<T & object>(session, name, query),
  };
}

function readOf(collection: string, { transaction, minSeq = 0 }: RemoteRead) {
  return {
    collection,
    txId: transaction?.id ?? '',
    minSeq: uint64Of(minSeq, 'min_seq'),
    encoding: DataEncoding.JSON,
  };
}

/** A write whose response is lost is retried with the same request id. */
function changeOf(session: Session, collection: string, options: RemoteWrite) {
  const { transaction, requestId } = options;
  return {
    collection,
    txId: transaction?.id ?? '',
    requestId: requestId || session.newRequestId(),
    encoding: DataEncoding.JSON,
  };
}

function bodyOf(session: Session, collection: string, data: object, options: RemoteWrite) {
  const change = changeOf(session, collection, options);
  return { ...change, dataJson: encodeData(data), ...ttlOf(options.ttlMs) };
}

/** The body of a change, which may be operators. */
function changedBody(
  session: Session,
  collection: string,
  data: object,
  options: RemoteWrite & ChangeCall,
) {
  if (options.mode === 'operators') {
    const change = changeOf(session, collection, options);
    return { ...change, updateJson: encodeUpdate(data), ...ttlOf(options.ttlMs) };
  }
  const mode = options.mode === 'merge' ? WireMode.MERGE : WireMode.REPLACE;
  return { ...bodyOf(session, collection, data, options), mode };
}

function checked(key: string): string {
  checkKey(key);
  return key;
}

function checkedAddress(address: Address): Address {
  if ('key' in address) checkKey(address.key);
  return address;
}

function foundBatch<T>({ records, readSeq, nextCursor, plan, count }: FindResponse): FoundBatch<T> {
  return {
    records: records.map((record) => toStored<T>(record)),
    readSeq: Number(readSeq),
    nextCursor,
    plan: plan && planOf(plan),
    count: count === undefined ? undefined : Number(count),
  };
}

async function orNothing<T>(
  call: Promise<{ record?: Parameters<typeof toStored>[0] }>,
  reason: string,
): Promise<StoredRecord<T> | undefined> {
  try {
    return toStored<T>((await call).record);
  } catch (error) {
    if (error instanceof Refusal && error.code === reason) return undefined;
    throw error;
  }
}
