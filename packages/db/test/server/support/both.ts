import { afterAll, beforeAll } from 'vitest';
import type { FlagValue } from '@millrace/kit/config';
import { GrpcClient } from './grpc.js';
import { fromStruct, type Message } from './proto.js';
import { RestClient } from './rest.js';
import { startServer, type TestServer } from './server.js';

/** One server per test file, with a gRPC and a REST client. */
export interface Both {
  server: TestServer;
  grpc: GrpcClient;
  rest: RestClient;
}

export function useServer(flags: Readonly<Record<string, FlagValue>> = {}): Both {
  const both = {} as Both;
  beforeAll(async () => {
    both.server = await startServer(flags);
    both.grpc = new GrpcClient(both.server.grpc);
    both.rest = new RestClient(both.server.http);
  });
  afterAll(async () => {
    both.grpc?.close();
    await both.server?.dispose();
  });
  return both;
}

let collections = 0;

/** A unique collection name. */
export function freshName(): string {
  return `c${++collections}`;
}

export function recordOf(answer: Message): Message {
  return answer['record'] as Message;
}

/** Converts a gRPC record to its REST form. */
export function plainRecord(record: Message): Message {
  const json = record['data_json'] as Buffer;
  const plain: Message = {
    id: record['id'],
    key: record['key'],
    rev: record['rev'],
    created_at: timeText(record['created_at']),
    updated_at: timeText(record['updated_at']),
    seq: record['seq'],
  };
  if (json.length > 0) plain['data'] = JSON.parse(json.toString());
  else if (record['data'] !== null) plain['data'] = fromStruct(record['data']);
  if (record['expires_at'] !== null) plain['expires_at'] = timeText(record['expires_at']);
  for (const name of ['created_at', 'updated_at']) if (plain[name] === '') delete plain[name];
  return plain;
}

export function timeText(time: unknown): string {
  if (time === null) return '';
  const { seconds, nanos } = time as { seconds: number; nanos: number };
  return new Date(seconds * 1000 + nanos / 1e6).toISOString();
}
