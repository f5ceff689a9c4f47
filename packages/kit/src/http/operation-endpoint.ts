import { Readable } from 'node:stream';
import type { ServerResponse } from 'node:http';
import { Refusal } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { ResponseCheck } from './response-check.js';
import type { AppCore, AppEndpoint } from './app.js';
import { hasBody, mediaTypeOf } from './body.js';
import type { ReadBody } from './body-reader.js';
import type { BoundOperation } from './bound.js';
import type { OperationDescription } from './document.js';
import { headerList, type Exchange } from './exchange.js';
import type { ContentResponse, UntypedResponse, UntypedOutcome } from './handlers.js';
import { CachedJson } from './cached-json.js';

const nothing: Readonly<Record<string, never>> = Object.freeze({});

/** Serves one operation of a document: media type, body, parameters, schema, then its handler. */
export class OperationEndpoint implements AppEndpoint {
  readonly isPublic: boolean;
  readonly bodyLimitBytes: number | undefined;
  readonly operation: OperationDescription;

  constructor(
    private readonly app: AppCore,
    private readonly bound: BoundOperation,
    private readonly answers: ResponseCheck | undefined,
  ) {
    this.operation = bound.operation;
    this.isPublic = bound.isPublic;
    this.bodyLimitBytes = bound.bodyLimitBytes;
  }

  serve(exchange: Exchange, bytes: Buffer | 'too large' | undefined): Promise<void> | undefined {
    const { bound } = this;
    if (!bound.body) this.#refuseCrossSiteBody(exchange);
    const call = new HandlerCall(this.app, this.operation, exchange);
    const body = bound.body?.parse(bytes!, exchange.headers);
    if (bound.query) call.query = bound.query.read(exchange.query);
    if (bound.headers) call.headers = bound.headers.read(exchange.headers);
    if (bound.path) call.params = bound.path.read(exchange.params);
    call.body = body?.value;
    const checked = bound.handler.before?.(call as never);
    const outcome =
      checked instanceof Promise
        ? checked.then(() => this.#handle(call, body))
        : this.#handle(call, body);
    // A synchronous handler saves a turn of the microtask queue.
    if (outcome instanceof Promise) return outcome.then((answer) => this.#answer(exchange, answer));
    this.#answer(exchange, outcome);
    return undefined;
  }

  #handle(call: HandlerCall, body: ReadBody | undefined): UntypedOutcome | Promise<UntypedOutcome> {
    const { bound } = this;
    if (body && bound.handler.checkBody) bound.body!.verify(body);
    return bound.handler.handle(call as never);
  }

  /**
   * A page of another site can send a form or plain text without a CORS preflight. Where the
   * contract has a code for it, such a body is rejected although the operation ignores it.
   */
  #refuseCrossSiteBody({ request, headers }: Exchange): void {
    const { unsupportedMediaType: code } = this.app.httpErrorCodes;
    if (!hasBody(request) || !this.operation.codes.includes(code)) return;
    const given = headers['content-type'];
    if (mediaTypeOf(given) === 'application/json') return;
    const found = given === undefined ? 'no Content-Type' : `Content-Type ${given}`;
    throw new Refusal(code, `The request has a body and ${found}: send application/json, or none.`);
  }

  #answer(exchange: Exchange, answer: UntypedOutcome): void {
    if ('takenOver' in answer) return;
    this.answers?.checkResponse(this.operation, answer);
    // Serialized first: an error response must not get these headers.
    const text = textOf(answer);
    const headers = answer.headers ? headerList(answer.headers) : [];
    if (answer.content !== undefined) {
      headers.push('content-type', answer.contentType!);
      this.#sendContent(exchange, answer.status, headers, answer.content);
      return;
    }
    if (text !== undefined) headers.push('content-type', 'application/json');
    this.app.send(exchange, answer.status, headers, text);
  }

  #sendContent(
    exchange: Exchange,
    status: number,
    headers: string[],
    content: ContentResponse<number, string>['content'],
  ): void {
    if (typeof content === 'string') {
      this.app.send(exchange, status, headers, content);
    } else if (content instanceof Uint8Array) {
      const { buffer, byteOffset, byteLength } = content;
      this.app.send(exchange, status, headers, Buffer.from(buffer, byteOffset, byteLength));
    } else {
      this.app.addDefaults(headers);
      exchange.begin(status, headers);
      void this.#stream(exchange, content);
    }
  }

  async #stream(
    exchange: Exchange,
    content: Readable | AsyncIterable<string | Uint8Array>,
  ): Promise<void> {
    if (exchange.method === 'HEAD') {
      if (content instanceof Readable) content.destroy();
      exchange.response.end();
      return;
    }
    const parts = content[Symbol.asyncIterator]() as AsyncIterator<string | Uint8Array>;
    // Ends a source that waits for its next part when the client disconnects.
    exchange.signal.addEventListener('abort', () => leave(parts, content), { once: true });
    try {
      for (let next = await parts.next(); !next.done; next = await parts.next()) {
        if (exchange.isClosed) return;
        await exchange.write(next.value);
      }
      exchange.response.end();
    } catch (error) {
      if (!exchange.isClosed) this.#streamFailed(exchange, error);
    } finally {
      leave(parts, content);
    }
  }

  #streamFailed(exchange: Exchange, error: unknown): void {
    const notes = { err: error, request_id: exchange.id };
    this.app.world.log.warn(notes, 'response stream failed');
    exchange.response.destroy();
  }
}

/** Ends a source without waiting: a generator that awaits cannot return immediately. */
function leave(parts: AsyncIterator<unknown>, content: unknown): void {
  if (content instanceof Readable) content.destroy();
  parts.return?.()?.catch(() => undefined);
}

/** Undefined: there is no body. */
function textOf({ body }: UntypedResponse): string | undefined {
  if (body instanceof CachedJson) return body.text;
  return body === undefined ? undefined : JSON.stringify(body);
}

/** A `Call` whose expensive parts are created on first use. */
class HandlerCall {
  readonly principal: unknown;
  params: unknown = nothing;
  query: unknown = nothing;
  headers: unknown = nothing;
  body: unknown;

  constructor(
    private readonly app: AppCore,
    readonly operation: OperationDescription,
    readonly exchange: Exchange,
  ) {
    this.principal = exchange.principal;
  }

  get log(): Log {
    return this.app.world.log.child({ request_id: this.exchange.id });
  }

  get ending(): AbortSignal {
    return this.app.ending;
  }

  get signal(): AbortSignal {
    return this.exchange.signal;
  }

  takeOver(): ServerResponse {
    const { response } = this.exchange;
    const head = this.exchange.beginHead([]);
    for (let i = 0; i < head.length; i += 2) response.setHeader(head[i]!, head[i + 1]!);
    return response;
  }
}
