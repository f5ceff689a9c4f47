import { expect, test } from 'vitest';
import { Database, dbReasons, type DbReasonEntry, grpcCodes, httpStatusOfCode } from './db.js';
import { openApiDocument } from './documents.js';
import { Code } from './generated/google/rpc/code_pb.js';

const reasons: [string, DbReasonEntry][] = Object.entries(dbReasons);
const methods = Database.methods.map((method) => method.name);

/** Clients rely on these by name. */
const promised =
  'DUPLICATE_KEY UNIQUE_VIOLATION RECORD_NOT_FOUND KEY_NOT_FOUND TX_NOT_FOUND REV_MISMATCH TX_CONFLICT TX_EXPIRED TX_LIMIT READ_ONLY_REPLICA FENCED REPLICA_LAG REPLICA_BEHIND WATCH_COMPACTED CURSOR_EXPIRED OVERLOADED RATE_LIMITED DISK_FULL BAD_FILTER RECORD_TOO_LARGE BAD_KEY MISSING_KEY UNKNOWN_KEY SCOPE SHUTTING_DOWN CORRUPT REQUEST_ID_REUSED'.split(
    ' ',
  );

test('the gRPC codes have their canonical numbers', () => {
  for (const [name, number] of Object.entries(grpcCodes)) expect(Code[number]).toBe(name);
  expect(Object.keys(grpcCodes)).toHaveLength(16);
});

test('the HTTP statuses are those of grpc-gateway', () => {
  expect(httpStatusOfCode).toEqual({
    CANCELLED: 499,
    UNKNOWN: 500,
    INVALID_ARGUMENT: 400,
    DEADLINE_EXCEEDED: 504,
    NOT_FOUND: 404,
    ALREADY_EXISTS: 409,
    PERMISSION_DENIED: 403,
    UNAUTHENTICATED: 401,
    RESOURCE_EXHAUSTED: 429,
    FAILED_PRECONDITION: 400,
    ABORTED: 409,
    OUT_OF_RANGE: 400,
    UNIMPLEMENTED: 501,
    INTERNAL: 500,
    UNAVAILABLE: 503,
    DATA_LOSS: 500,
  });
});

test.each(reasons)('%s has the HTTP status of its code', (reason, { code, status }) => {
  // Some mistakes have statuses of their own, which no gRPC code maps to.
  const ofHttp: Record<string, number> = {
    NO_SUCH_METHOD: 405,
    UNSUPPORTED_MEDIA_TYPE: 415,
    BAD_UPDATE: 422,
    TYPE_MISMATCH: 422,
  };
  expect(status).toBe(ofHttp[reason] ?? httpStatusOfCode[code]);
});

test.each(reasons)('%s is a name and one sentence', (reason, { meaning }) => {
  expect(reason).toMatch(/^[A-Z][A-Z0-9_]{1,61}[A-Z0-9]$/);
  expect(meaning).toMatch(/^[A-Z].+\.$/);
});

test.each(reasons)('%s is given somewhere', (_, entry) => {
  if (typeof entry.methods === 'string') return;
  const given = [...entry.methods, ...(entry.toPeers ?? [])];
  expect(given).not.toEqual([]);
  expect(given.filter((name) => !methods.includes(name))).toEqual([]);
});

test('every promised reason is there', () => {
  expect(promised.filter((reason) => !(reason in dbReasons))).toEqual([]);
});

test('the OpenAPI document lists exactly these reasons', () => {
  const document = openApiDocument('db');
  const names = Object.keys(dbReasons);
  expect(document.components.schemas['Reason']?.['enum']).toEqual(names);
  expect(document['x-error-codes']).toEqual(
    Object.fromEntries(
      reasons.map(([reason, { status, code, meaning, metadata }]) => [
        reason,
        { status, grpc_code: code, description: meaning, ...(metadata && { metadata }) },
      ]),
    ),
  );
});
