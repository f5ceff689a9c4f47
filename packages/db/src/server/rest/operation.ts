import type { IncomingMessage } from 'node:http';
import { Database as Api, DataEncoding, UpdateMode, type DbRoute } from '@millrace/contract/db';
import { refuse } from '../../engine/refusal.js';
import { tooLarge } from '../grpc/codec.js';
import { badField, parseJson } from '../service/values.js';
import type { Exchange } from '@millrace/kit/http';
import { chooseForm, formsOf } from './forms.js';
import { RequestReader } from './json-in.js';
import { jsonWriter } from './json-out.js';
import { parseQuery } from './query.js';
import type { StreamForm } from './streams.js';

const pageRecords = 100;
const mostPageRecords = 10_000;

const modes: Partial<Record<DbRoute['method'], UpdateMode>> = {
  PUT: UpdateMode.REPLACE,
  PATCH: UpdateMode.MERGE,
};

/** The fields of a request message, by their local names. */
export type Fields = Record<string, unknown>;

/** One HTTP binding of a method: how its request is read and its answer is written. */
export class Operation {
  readonly forms: ReadonlyMap<string, StreamForm> | undefined;
  /** The text of an answer. */
  readonly write: (message: unknown) => string;
  readonly #reader: RequestReader;
  readonly #mode: UpdateMode | undefined;
  /** Records are asked for as JSON; groups have a form for REST alone. */
  readonly #asksJson: boolean;

  constructor(readonly route: DbRoute) {
    const method = Api.methods.find(({ name }) => name === route.rpc)!;
    this.#reader = new RequestReader(method.input);
    this.write = jsonWriter(method.output);
    this.forms = route.streaming ? formsOf(route) : undefined;
    const hasEncoding = method.input.fields.some(({ name }) => name === 'encoding');
    this.#asksJson = hasEncoding && route.rpc !== 'Aggregate';
    const hasMode = method.input.fields.some(({ name }) => name === 'mode');
    this.#mode = hasMode ? modes[route.method] : undefined;
  }

  /** The request message. */
  read({ request, params: path, queryText }: Exchange, bytes: Buffer | 'too large'): Fields {
    const query = parseQuery(queryText);
    if (bytes === 'too large') throw tooLarge(announcedBytes(request));
    if (this.route.body === '') {
      checkNoBody(request, bytes);
      return this.#finish(this.#reader.fromQuery(path, query, this.route.queryFields), request);
    }
    const [stray] = query;
    if (stray) throw badField(stray[0], 'is no parameter of the query; send it in the body');
    const body = this.#reader.fromBody(path, parseBody(request, bytes));
    return this.#finish(body, request);
  }

  chooseForm(request: IncomingMessage): StreamForm {
    return chooseForm(this.forms!, request.headers.accept);
  }

  #finish(message: Fields, request: IncomingMessage): Fields {
    if (this.#mode !== undefined) this.#setMode(message);
    // The text of a record can then be made of its bytes.
    if (this.#asksJson) message['encoding'] = DataEncoding.JSON;
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

  /** A page has an end; a stream has as much as there is. */
  #setLimit(message: Fields, request: IncomingMessage): void {
    if (this.chooseForm(request).contentType !== 'application/json') return;
    message['limit'] = Math.min(Number(message['limit']) || pageRecords, mostPageRecords);
  }
}

/** A browser that reconnects sends the same address again: what it has seen last wins. */
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

/** The body as JSON; nothing at all is an empty object. */
function parseBody(request: IncomingMessage, bytes: Buffer): unknown {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw badField('Content-Encoding', `${encoding} is not taken: send the body as it is`);
  }
  if (bytes.length === 0) return {};
  return parseJson(bytes, (problem) => refuse('BAD_REQUEST', `The body ${problem}.`));
}

function checkNoBody(request: IncomingMessage, bytes: Buffer): void {
  if (bytes.length === 0 || bytes.toString('latin1').trim() === '{}') return;
  throw badField('The body', `of a ${request.method} is not read: send its fields in the query`);
}
