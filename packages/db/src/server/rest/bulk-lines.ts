import type { IncomingMessage } from 'node:http';
import {
  BulkOperationSchema,
  BulkResultSchema,
  DataEncoding,
  type BulkOperation,
  type BulkResult,
} from '@millrace/contract/db';
import { Refusal } from '@millrace/kit/errors';
import { mediaTypeOf, PeerMemoryExceeded, type Exchange } from '@millrace/kit/http';
import { bulkCommitRecords } from '@millrace/engine/write/bulk';
import { refuse } from '@millrace/engine/value/documents';
import type { Calls, CallScope } from '../calls/calls.js';
import { bulkError } from '../service/bulk.js';
import { badField, parseJson } from '../service/records.js';
import { RequestReader, parseQuery } from './json-in.js';
import { jsonWriter } from './json-out.js';
import { LineQueue, maxLineBytes, ResponseWriter } from './streams.js';

const mediaType = 'application/x-ndjson';
const reader = new RequestReader(BulkOperationSchema);
const writeResult = jsonWriter(BulkResultSchema);

/** Whether the body of a bulk is a stream of lines. */
export function hasBulkLines({ headers }: Exchange): boolean {
  return mediaTypeOf(headers['content-type']) === mediaType;
}

/**
 * A bulk of any length: one operation per line in, one result per line out, in order. Lines are
 * committed up to 1,000 at a time while the next ones arrive.
 */
export async function serveBulkLines(
  calls: Calls,
  scope: CallScope,
  exchange: Exchange,
): Promise<void> {
  const { request, params } = exchange;
  const options = optionsOf(exchange);
  const head = { collection: params['collection']!, ...options };
  checkEncoding(request);
  // The lines that wait and the longest line.
  if (!exchange.tryHold(2 * maxLineBytes)) throw new PeerMemoryExceeded();
  // Refuses a caller without access before the first line is read.
  await runOperations(calls, scope, head, []);
  const writer = new ResponseWriter(exchange, scope);
  const lines = new LineQueue(request, scope.signal);
  let isStopped = false;
  for (;;) {
    const batch = await lines.take(bulkCommitRecords);
    if (!batch) break;
    const parsed = isStopped ? batch.map(() => undefined) : batch.map(parseLine);
    const results = await runLines(parsed, head, (some) => runOperations(calls, scope, head, some));
    isStopped ||= head.ordered && results.some(({ status }) => status !== 'OK');
    if (!writer.hasBegun) writer.begin(mediaType);
    await writer.write(results.map((result) => `${writeResult(result)}\n`).join(''));
  }
  writer.end(mediaType);
}

interface Head {
  collection: string;
  ordered: boolean;
  returnRecords: boolean;
}

type ParsedLine = BulkOperation | Refusal | undefined;

/** Runs the operations up to the first bad line of an ordered bulk, and joins all results. */
async function runLines(
  parsed: readonly ParsedLine[],
  { ordered }: Head,
  run: (operations: BulkOperation[]) => Promise<readonly BulkResult[]>,
): Promise<BulkResult[]> {
  const firstBad = parsed.findIndex((line) => line === undefined || line instanceof Refusal);
  const end = ordered && firstBad !== -1 ? firstBad : parsed.length;
  const operations = parsed
    .slice(0, end)
    .filter((line): line is BulkOperation => line !== undefined && !(line instanceof Refusal));
  const done = operations.length === 0 ? [] : await run(operations);
  let next = 0;
  let isStopped = false;
  return parsed.map((line, i) => {
    if (line === undefined || isStopped || i > end) return emptyResult('NOT_RUN');
    const failed = line instanceof Refusal;
    const result = failed
      ? { ...emptyResult('FAILED'), error: bulkError(line) }
      : (done[next++] ?? emptyResult('NOT_RUN'));
    isStopped = ordered && failed;
    return result;
  });
}

async function runOperations(
  calls: Calls,
  scope: CallScope,
  { collection, ordered, returnRecords }: Head,
  operations: BulkOperation[],
): Promise<readonly BulkResult[]> {
  const { results } = await calls.unary(scope, 'BulkWrite', {
    collection,
    operations,
    ordered,
    atomic: false,
    requestId: '',
    txId: '',
    returnRecords,
    encoding: DataEncoding.JSON,
  });
  return results;
}

function parseLine(line: Buffer | 'too long'): ParsedLine {
  try {
    if (line === 'too long') throw badField('The line', `is longer than ${maxLineBytes} bytes`);
    const json = parseJson(line, (problem) => refuse('BAD_REQUEST', `The line ${problem}.`));
    return reader.fromBody({}, json) as unknown as BulkOperation;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function emptyResult(status: BulkResult['status']): BulkResult {
  return {
    $typeName: 'millrace.db.v1.BulkResult',
    status,
    id: '',
    key: '',
    rev: 0n,
    created: false,
    seq: 0n,
  };
}

function optionsOf({ queryText }: Exchange): { ordered: boolean; returnRecords: boolean } {
  const options = { ordered: false, return_records: false };
  for (const [name, text] of parseQuery(queryText)) {
    if (!(name in options)) {
      throw badField(name, 'is not a parameter of an NDJSON bulk; use ordered or return_records');
    }
    if (text !== 'true' && text !== 'false') throw badField(name, 'must be true or false');
    options[name as keyof typeof options] = text === 'true';
  }
  return { ordered: options.ordered, returnRecords: options.return_records };
}

function checkEncoding({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return;
  throw badField('Content-Encoding', `${encoding} is not supported: send the body uncompressed`);
}
