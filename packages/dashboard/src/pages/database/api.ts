import { ApiError } from '@millrace/client';
import { queryOptions } from '@tanstack/react-query';
import { authorizedFetch } from '../../api/client.js';
import type { AggregateBody, Group } from './aggregate.js';
import type { Condition, FindBody } from './query.js';

export interface DbRecord {
  id: string;
  key: string;
  rev: number;
  data: Record<string, unknown>;
  created_at: string;
  updated_at: string;
  seq: number;
  expires_at?: string;
}

export interface Plan {
  index: string;
  rows_scanned: number;
  rows_returned: number;
  full_scan: boolean;
  sorted_in_memory: boolean;
  elapsed_ms: number;
}

export interface FindPage {
  records: DbRecord[];
  next_cursor: string;
  plan?: Plan;
  count?: number;
}

type IndexState = 'building' | 'ready' | 'failed';

export interface CollectionStatus {
  name: string;
  records: number;
  indexes: { name: string; unique: boolean; sparse: boolean; state: IndexState }[];
  default_ttl?: string;
}

export interface NodeStatus {
  role: 'leader' | 'follower' | 'fenced';
  state: string;
  seq: number;
  durability: 'full' | 'relaxed';
  version: string;
  lag: number;
  followers: unknown[];
  collections: CollectionStatus[];
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
    queryOptions({
      queryKey: ['db-status'],
      queryFn: () => request<NodeStatus>('GET', '/v1/admin/replication?include_collections=true'),
      refetchInterval: 5_000,
    }),
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

export interface CollectionSchema {
  schema: unknown;
  validate: 'strict' | 'warn';
  updated_at?: string;
  violation_count: number;
}

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

/** An index that would have served slow queries. */
export interface IndexAdvice {
  collection: string;
  fields: string[];
  query_count: number;
  total_ms: number;
  max_ms: number;
  rows_scanned: number;
  rows_returned: number;
  filter: string;
}

export const readAdvice = async (): Promise<IndexAdvice[]> =>
  (await request<{ advice: IndexAdvice[] }>('GET', '/v1/admin/index-advice')).advice;

export const createIndex = (collection: string, fields: readonly string[]): Promise<unknown> =>
  request('POST', `/v1/admin/collections/${encodeURIComponent(collection)}/indexes`, { fields });

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
