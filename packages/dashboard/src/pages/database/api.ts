import { ApiError } from '@millrace/client';
import type { DbSchema } from '@millrace/contract/db';
import { authorizedFetch } from '../../api/client.js';
import { read } from '../../api/queries.js';
import type { AggregateBody, Condition, FindBody, Group } from './query.js';

type Row = DbSchema<'Record'>;
/** A record as reads return it: with its body and times. */
export type DbRecord = Row & Required<Pick<Row, 'data' | 'created_at' | 'updated_at'>>;
export type Plan = DbSchema<'QueryPlan'>;
export type CollectionStatus = DbSchema<'CollectionStatus'>;
export type CollectionSchema = DbSchema<'CollectionSchema'>;
export type IndexAdvice = DbSchema<'IndexAdvice'>;
export type IndexStatus = DbSchema<'IndexStatus'>;
export type NodeStatus = DbSchema<'ReplicationStatusResponse'>;
type Definition = DbSchema<'CreateIndexBody'>;

export interface FindPage extends Omit<DbSchema<'FindResponse'>, 'records' | 'read_seq'> {
  records: DbRecord[];
}

export const base = `${location.origin}/api/v1/proxy/db`;
const pathOf = (collection: string, rest: string) =>
  `/v1/${encodeURIComponent(collection)}/${rest}`;

/** Calls the database through the daemon's proxy, which adds the database key. */
async function request<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await authorizedFetch(base + path, initOf(method, body));
  const result: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw errorOf(response.status, result);
  return result as T;
}

function initOf(method: string, body?: object): RequestInit {
  return {
    method,
    ...(body && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  };
}

interface RpcStatus {
  message?: string;
  details?: readonly { reason?: string; metadata?: Readonly<Record<string, string>> }[];
}

/** Converts a google.rpc.Status of the database, or a problem of the daemon, to an ApiError. */
export function errorOf(status: number, response: unknown): ApiError {
  const body = (response ?? {}) as RpcStatus & Readonly<Record<string, unknown>>;
  if (typeof body.message !== 'string') return new ApiError(status, body);
  const info = body.details?.find(({ reason }) => reason !== undefined);
  return new ApiError(status, { detail: body.message, code: info?.reason, ...info?.metadata });
}

export const databaseQueries = {
  status: () =>
    read(
      ['db-status'],
      () => request<NodeStatus>('GET', '/v1/admin/replication?include_collections=true'),
      { refetchInterval: 5_000 },
    ),
};

export const find = (collection: string, body: FindBody): Promise<FindPage> =>
  request('POST', pathOf(collection, 'records:find'), body);

export const aggregate = (
  collection: string,
  body: AggregateBody,
): Promise<{ groups: Group[]; plan?: Plan }> =>
  request('POST', pathOf(collection, 'records:aggregate'), body);

const recordPath = (collection: string, id: string) =>
  pathOf(collection, `records/${encodeURIComponent(id)}`);

interface OneRecord {
  record: DbRecord;
}

export const readRecord = async (collection: string, id: string): Promise<DbRecord> =>
  (await request<OneRecord>('GET', recordPath(collection, id))).record;

/** Writes only if the record still has the revision that was read. */
export const updateIfRev = async (
  collection: string,
  { id, rev }: { id: string; rev: number },
  data: object,
): Promise<DbRecord> => {
  const path = `${recordPath(collection, id)}:updateIfRev`;
  return (await request<OneRecord>('POST', path, { expected_rev: rev, data })).record;
};

export const insert = async (collection: string, key: string, data: object): Promise<DbRecord> => {
  const response =
    key === ''
      ? request<OneRecord>('POST', pathOf(collection, 'records'), { data })
      : request<OneRecord>('POST', pathOf(collection, 'keys'), { key, data });
  return (await response).record;
};

export const remove = (collection: string, id: string): Promise<unknown> =>
  request('DELETE', recordPath(collection, id));

/** The schema of a collection; null when it has none. */
export async function readSchema(collection: string): Promise<CollectionSchema | null> {
  const path = `/v1/admin/schemas/${encodeURIComponent(collection)}`;
  try {
    return (await request<{ schema: CollectionSchema }>('GET', path)).schema;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'SCHEMA_NOT_FOUND') return null;
    throw error;
  }
}

export const readAdvice = async (): Promise<IndexAdvice[]> =>
  (await request<DbSchema<'AdviseIndexesResponse'>>('GET', '/v1/admin/index-advice')).advice;

const indexesPath = (collection: string) =>
  `/v1/admin/collections/${encodeURIComponent(collection)}/indexes`;

/** Creates an index; `seq` is 0 when it existed. */
export const createIndex = (
  collection: string,
  definition: Definition,
): Promise<DbSchema<'CreateIndexResponse'>> => request('POST', indexesPath(collection), definition);

export const dropIndex = (
  collection: string,
  index: string,
): Promise<DbSchema<'DropIndexResponse'>> =>
  request('DELETE', `${indexesPath(collection)}/${encodeURIComponent(index)}`);

export interface Change {
  op: 'CHANGE_OP_INSERT' | 'CHANGE_OP_UPDATE' | 'CHANGE_OP_DELETE' | 'CHANGE_OP_EXPIRE';
  record: DbRecord;
  entered: boolean;
  left: boolean;
}

export interface WatchMessage {
  kind: string;
  seq: number;
  committed_at?: string;
  changes: Change[];
  resume_token: string;
  error?: RpcStatus;
}

interface WatchRequest {
  filter?: Condition;
  resume_token?: string;
}

/** Opens a watch: an endless stream of JSON lines. */
export async function openWatch(
  collection: string,
  request: WatchRequest,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const path = pathOf(collection, 'records:watch');
  const response = await authorizedFetch(base + path, { ...initOf('POST', request), signal });
  if (!response.ok) throw errorOf(response.status, await response.json().catch(() => undefined));
  return response.body!;
}
