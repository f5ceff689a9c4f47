import {
  type DbRoute,
  Database as Api,
  DataEncoding,
  UpdateMode,
  dbErrorDomain,
  grpcCodes,
} from '@millrace/contract/db';
import type { StreamingRpc } from '../service/call.js';
import { backupFileForm } from './backup-file.js';
import {
  eventsForm,
  itemLinesForm,
  messageLinesForm,
  pageForm,
  type StreamForm,
} from './streams.js';
import type { IncomingMessage, IncomingHttpHeaders } from 'node:http';
import { refuse } from '@millrace/engine/value/documents';
import { requestLimit, tooLarge } from '../grpc/codec.js';
import { badField, parseJson, duration } from '../service/records.js';
import { mediaTypeOf, type Exchange } from '@millrace/kit/http';
import { RequestReader, parseQuery, durationText } from './json-in.js';
import { jsonWriter } from './json-out.js';
import type { Clock } from '@millrace/kit/clock';
import { callEnded, type CallScope } from '../calls/calls.js';
import type { CallStatus } from '../base/status.js';

/** Response formats of a streaming method by media type, the default first. */
function formsOf({ rpc, media }: DbRoute): ReadonlyMap<string, StreamForm> {
  const streaming = rpc as StreamingRpc;
  const isWatch = rpc === 'Watch';
  const makers: Record<string, () => StreamForm> = {
    'application/json': () => pageForm(streaming),
    'application/x-ndjson': () => (isWatch ? messageLinesForm : itemLinesForm)(streaming),
    'text/event-stream': () => eventsForm(streaming),
    'application/octet-stream': () => backupFileForm,
  };
  return new Map(
    media.map((type) => {
      const make = makers[type];
      if (!make) throw new Error(`REST has no form ${type} for ${rpc}`);
      return [type, make()];
    }),
  );
}

/** The format from the Accept header, or the default. */
function chooseForm(
  forms: ReadonlyMap<string, StreamForm>,
  accept: string | undefined,
): StreamForm {
  for (const part of accept?.split(',') ?? []) {
    const form = forms.get(part.split(';')[0]!.trim().toLowerCase());
    if (form) return form;
  }
  return forms.values().next().value!;
}

const pageRecords = 100;
const maxPageRecords = 10_000;

const modes: Partial<Record<DbRoute['method'], UpdateMode>> = {
  PUT: UpdateMode.REPLACE,
  PATCH: UpdateMode.MERGE,
};

/** Fields of a request message by local name. */
export type Fields = Record<string, unknown>;

/** One HTTP binding of a method: decodes its request and encodes its response. */
export class Operation {
  readonly forms: ReadonlyMap<string, StreamForm> | undefined;
  /** Encodes a response as JSON. */
  readonly write: (message: unknown) => string;
  readonly #reader: RequestReader;
  readonly #mode: UpdateMode | undefined;
  /** Requests records as JSON; Aggregate has its own REST format. */
  readonly #wantsJson: boolean;

  constructor(readonly route: DbRoute) {
    const method = Api.methods.find(({ name }) => name === route.rpc)!;
    this.#reader = new RequestReader(method.input);
    this.write = jsonWriter(method.output);
    this.forms = route.streaming ? formsOf(route) : undefined;
    const hasEncoding = method.input.fields.some(({ name }) => name === 'encoding');
    this.#wantsJson = hasEncoding && route.rpc !== 'Aggregate';
    const hasMode = method.input.fields.some(({ name }) => name === 'mode');
    this.#mode = hasMode ? modes[route.method] : undefined;
  }

  /** The request message. */
  read({ request, params: path, queryText }: Exchange, bytes: Buffer | 'too large'): Fields {
    const query = parseQuery(queryText);
    if (bytes === 'too large') {
      throw tooLarge(announcedBytes(request), requestLimit(this.route.rpc));
    }
    if (this.route.body === '') {
      checkNoBody(request, bytes);
      return this.#finish(this.#reader.fromQuery(path, query, this.route.queryFields), request);
    }
    const [unknown] = query;
    if (unknown) throw badField(unknown[0], 'is not a query parameter; send it in the body');
    const body = parseBody(request, bytes);
    if (this.route.rpc === 'BulkWrite') checkOperations(body);
    if (this.route.rpc === 'Aggregate') nameExpressions(body as Fields);
    if (this.route.rpc === 'Find') nameSearch(body as Fields);
    if (this.route.rpc === 'Find' || this.route.rpc === 'Aggregate') listLookups(body as Fields);
    return this.#finish(this.#reader.fromBody(path, body), request);
  }

  chooseForm(request: IncomingMessage): StreamForm {
    return chooseForm(this.forms!, request.headers.accept);
  }

  #finish(message: Fields, request: IncomingMessage): Fields {
    if (this.#mode !== undefined) this.#setMode(message);
    // Lets the JSON of a record be written from its stored bytes.
    if (this.#wantsJson) message['encoding'] = DataEncoding.JSON;
    if (this.route.rpc === 'Find') this.#setLimit(message, request);
    if (this.route.rpc === 'Watch') setPosition(message, request);
    return message;
  }

  #setMode(message: Fields): void {
    const given = message['mode'];
    if (given !== UpdateMode.UNSPECIFIED && given !== this.#mode) {
      const { method } = this.route;
      const does =
        method === 'PUT'
          ? 'replaces: leave it out or send PATCH'
          : 'merges: leave it out or send PUT';
      throw badField('mode', `contradicts ${method}, which ${does}`);
    }
    message['mode'] = this.#mode;
  }

  /** A page has a limit; a stream returns all records. */
  #setLimit(message: Fields, request: IncomingMessage): void {
    if (this.chooseForm(request).contentType !== 'application/json') return;
    message['limit'] = Math.min(Number(message['limit']) || pageRecords, maxPageRecords);
  }
}

/** In the message a missing list is an empty one, so a misspelt body would write nothing. */
function checkOperations(body: unknown): void {
  const { operations } = (body ?? {}) as { operations?: unknown };
  if (operations === undefined || operations === null) throw badField('operations', 'is missing');
}

/** A search may be its text alone. */
function nameSearch(body: Fields): void {
  if (typeof body['search'] === 'string') body['search'] = { text: body['search'] };
}

/** One lookup need not be in a list. */
function listLookups(body: Fields): void {
  const { lookup } = body;
  if (lookup !== undefined && lookup !== null && !Array.isArray(lookup)) body['lookup'] = [lookup];
}

/** Objects in `group_by` are the expressions of `group_expressions`, beside its paths. */
function nameExpressions(body: Fields): void {
  const name = 'group_by' in body ? 'group_by' : 'groupBy';
  const groups = body[name];
  if (!Array.isArray(groups) || groups.every((each) => typeof each !== 'object')) return;
  delete body[name];
  body['group_expressions'] = groups.map((each: unknown) =>
    typeof each === 'string' ? { field: each } : each,
  );
}

/** A reconnecting EventSource repeats the URL, so Last-Event-ID overrides its resume token. */
function setPosition(message: Fields, request: IncomingMessage): void {
  const lastEvent = request.headers['last-event-id'];
  if (typeof lastEvent !== 'string' || lastEvent === '') return;
  message['resumeToken'] = lastEvent;
  message['startSeq'] = 0n;
}

function announcedBytes({ headers }: IncomingMessage): number | undefined {
  const length = headers['content-length'];
  return length === undefined ? undefined : Number(length);
}

/** Parses the body as JSON; an empty body is an empty object. */
function parseBody(request: IncomingMessage, bytes: Buffer): unknown {
  const { 'content-encoding': encoding, 'content-type': given } = request.headers;
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw badField('Content-Encoding', `${encoding} is not supported: send the body uncompressed`);
  }
  if (bytes.length === 0) return {};
  if (mediaTypeOf(given) !== 'application/json') {
    const found = given === undefined ? 'no Content-Type' : `Content-Type ${given}`;
    const text = `The request has ${found}: send application/json.`;
    throw refuse('UNSUPPORTED_MEDIA_TYPE', text);
  }
  return parseJson(bytes, (problem) => refuse('BAD_REQUEST', `The body ${problem}.`));
}

function checkNoBody(request: IncomingMessage, bytes: Buffer): void {
  if (bytes.length === 0 || bytes.toString('latin1').trim() === '{}') return;
  throw badField(
    'The body',
    `of a ${request.method} is not supported: send its fields in the query`,
  );
}

const unitMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** The deadline from the `Grpc-Timeout` header, in gRPC's format: `250m` is 250 ms. */
export function deadlineOf(headers: IncomingHttpHeaders, clock: Clock): number | undefined {
  const header = headers['grpc-timeout'];
  if (typeof header !== 'string') return undefined;
  const found = /^(\d{1,8})([HMSmun])$/.exec(header);
  return found ? clock.now() + Number(found[1]) * unitMs[found[2]!]! : undefined;
}

export function checkTimeout(headers: IncomingHttpHeaders): void {
  const header = headers['grpc-timeout'];
  if (typeof header === 'string' && !/^\d{1,8}[HMSmun]$/.test(header)) {
    throw badField('Grpc-Timeout', 'must be a number and a unit, such as 250m for 250 ms or 5S');
  }
}

/** The result of the work, or the abort reason when the deadline passes first. */
export async function untilAborted(
  scope: CallScope,
  clock: Clock,
  work: Promise<void>,
): Promise<void> {
  const { signal, deadline } = scope;
  const timer = clock.after(Math.max(0, deadline! - clock.now()), () =>
    scope.abort(refuse('DEADLINE_EXCEEDED', 'The deadline of the call passed.')),
  );
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      // The work aborts its own scope just before it completes.
      if (signal.reason !== callEnded) reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort);
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', onAbort!);
    work.catch(() => undefined);
  }
}

const type = (name: string) => `type.googleapis.com/google.rpc.${name}`;

/** The body of an error response: a google.rpc.Status. */
export function statusJson(status: CallStatus): object {
  const { reason, message, metadata, retryAfterMs, violations } = status;
  const details: object[] = [
    {
      '@type': type('ErrorInfo'),
      reason,
      domain: dbErrorDomain,
      ...(Object.keys(metadata).length > 0 && { metadata }),
    },
  ];
  if (retryAfterMs !== undefined) {
    const retryDelay = durationText(duration(retryAfterMs));
    details.push({ '@type': type('RetryInfo'), retry_delay: retryDelay });
  }
  if (violations.length > 0) {
    details.push({
      '@type': type('BadRequest'),
      field_violations: violations.map(({ pointer, message: description }) => ({
        field: pointer,
        description,
      })),
    });
  }
  return { code: grpcCodes[status.code], message, details };
}

/** Headers of an error response. */
export function statusHeaders(status: CallStatus): Record<string, string> {
  const headers: Record<string, string> = {};
  if (status.status === 401) headers['www-authenticate'] = 'Bearer realm="millrace"';
  if (status.retryAfterMs !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(status.retryAfterMs / 1000)));
  }
  return headers;
}
