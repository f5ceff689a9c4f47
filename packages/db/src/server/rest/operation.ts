import type { IncomingMessage } from 'node:http';
import { Database as Api, DataEncoding, UpdateMode, type DbRoute } from '@millrace/contract/db';
import { refuse } from '@millrace/engine/value/refusal';
import { requestLimit, tooLarge } from '../grpc/codec.js';
import { badField, parseJson } from '../service/values.js';
import { mediaTypeOf, type Exchange } from '@millrace/kit/http';
import { chooseForm, formsOf } from './forms.js';
import { RequestReader } from './json-in.js';
import { jsonWriter } from './json-out.js';
import { parseQuery } from './query.js';
import type { StreamForm } from './streams.js';

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
