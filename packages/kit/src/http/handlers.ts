import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Log } from '../log.js';
import type { OperationDescription } from './document.js';
import type { Exchange } from './exchange.js';
import type { KeptJson } from './kept-json.js';

/**
 * The handlers of a server, one per operation. `Operations` is the interface of that name that
 * openapi-typescript generates, so a missing, misnamed or mistyped handler does not compile.
 */
export type Handlers<Operations extends object, Principal> = {
  [Id in keyof Operations]: HandlerEntry<Operations[Id], Principal>;
};

export type HandlerEntry<Operation, Principal> =
  Handler<Operation, Principal> | StagedHandler<Operation, Principal>;

export type Handler<Operation, Principal> = (
  call: Call<Operation, Principal>,
) => Outcome<Operation> | Promise<Outcome<Operation>>;

type Outcome<Operation> = Answer<Operation> | typeof takenOver;

/** A handler that takes a hand in the order of checks. */
export interface StagedHandler<Operation, Principal> {
  /**
   * Runs when the body is known to be JSON and the parameters are good, before the body is held
   * against its schema: the place for "there is no such queue".
   */
  before?: (call: Call<Operation, Principal>) => void | Promise<void>;
  /** False hands the body over as it came, for a handler that judges its parts one by one. */
  checkBody?: boolean;
  /** Overrides the server's `fillDefaults` for this operation. */
  fillDefaults?: boolean;
  handle: Handler<Operation, Principal>;
}

/** One request, checked and typed. */
export interface Call<Operation, Principal> {
  readonly operation: OperationDescription;
  readonly params: ParametersOf<Operation, 'path'>;
  readonly query: ParametersOf<Operation, 'query'>;
  /** The header parameters of the document, by the names they have there. */
  readonly headers: ParametersOf<Operation, 'header'>;
  readonly body: BodyOf<Operation>;
  /** The caller; on a public operation the server's `anonymous`. */
  readonly principal: Principal;
  readonly exchange: Exchange;
  /** Carries the request's id. */
  readonly log: Log;
  /** Aborted when the client goes away before it has its answer. */
  readonly signal: AbortSignal;
  /** Aborted when the server starts to drain: an open-ended stream ends itself then. */
  readonly ending: AbortSignal;
  /** Hands the response over to code that writes it itself. Return `takenOver` then. */
  takeOver(): ServerResponse;
}

/** What a handler returns after `call.takeOver()`. */
export const takenOver = Object.freeze({ takenOver: true });

/** What a handler may answer with: any documented outcome that is not an error. */
export type Answer<Operation> = Operation extends { responses: infer Responses }
  ? { [Status in keyof Responses]: AnswerFor<Status, Responses[Status]> }[keyof Responses]
  : never;

export type AnswerHeaders = Readonly<Record<string, string | number | boolean | undefined>>;

export interface JsonAnswer<Status, Body> {
  status: Status;
  body: Body | KeptJson<Body>;
  headers?: AnswerHeaders;
}

export interface EmptyAnswer<Status> {
  status: Status;
  body?: undefined;
  headers?: AnswerHeaders;
}

/** Bytes, text or a stream of a documented media type. */
export interface ContentAnswer<Status, MediaType> {
  status: Status;
  contentType: MediaType;
  content: string | Uint8Array | Readable | AsyncIterable<string | Uint8Array>;
  headers?: AnswerHeaders;
}

type AnswerFor<Status, Response> = Status extends number
  ? Response extends { content: infer Contents }
    ? ContentsAnswer<Status, Contents>
    : EmptyAnswer<Status>
  : never;

type ContentsAnswer<Status, Contents> = {
  [MediaType in keyof Contents]: MediaType extends 'application/json'
    ? JsonAnswer<Status, Contents[MediaType]>
    : MediaType extends 'application/problem+json'
      ? never
      : ContentAnswer<Status, MediaType>;
}[keyof Contents];

type ParametersOf<Operation, Place extends 'path' | 'query' | 'header'> = Operation extends {
  parameters: infer Parameters;
}
  ? Place extends keyof Parameters
    ? [Exclude<Parameters[Place], undefined>] extends [never]
      ? NoParameters
      : Exclude<Parameters[Place], undefined>
    : NoParameters
  : NoParameters;

/** An object without members that can be named. */
type NoParameters = object;

type BodyOf<Operation> = Operation extends { requestBody?: infer Body }
  ? [Exclude<Body, undefined>] extends [never]
    ? undefined
    : | ContentOf<Exclude<Body, undefined>>
      | (Operation extends { requestBody: object } ? never : undefined)
  : undefined;

type ContentOf<Body> = Body extends { content: infer Contents } ? Contents[keyof Contents] : never;

/** A handler as the glue sees it, without the types of its operation. */
export interface UntypedHandler {
  before: ((call: never) => void | Promise<void>) | undefined;
  checkBody: boolean;
  fillDefaults: boolean | undefined;
  handle: (call: never) => UntypedOutcome | Promise<UntypedOutcome>;
}

export type UntypedOutcome = UntypedAnswer | typeof takenOver;

export interface UntypedAnswer {
  status: number;
  body?: unknown;
  headers?: AnswerHeaders;
  contentType?: string;
  content?: ContentAnswer<number, string>['content'];
}

export function untypedHandler(entry: unknown): UntypedHandler {
  if (typeof entry === 'function') {
    const handle = entry as UntypedHandler['handle'];
    return { before: undefined, checkBody: true, fillDefaults: undefined, handle };
  }
  const staged = entry as StagedHandler<never, never>;
  return {
    before: staged.before,
    checkBody: staged.checkBody ?? true,
    fillDefaults: staged.fillDefaults,
    handle: staged.handle,
  };
}
