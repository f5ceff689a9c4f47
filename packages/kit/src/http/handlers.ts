import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Log } from '../base/log.js';
import type { OperationDescription } from './document.js';
import type { Exchange } from './exchange.js';
import type { CachedJson } from './cached-json.js';

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

type Outcome<Operation> = HandlerResponse<Operation> | typeof takenOver;

/** A handler with additional checks. */
export interface StagedHandler<Operation, Principal> {
  /**
   * Runs after the syntax of the body and the parameters are checked, before the schema of the
   * body, for example to check that the queue exists.
   */
  before?: (call: Call<Operation, Principal>) => void | Promise<void>;
  /** False skips the schema check, for a handler that checks the items of a body itself. */
  checkBody?: boolean;
  /** Overrides the server's `fillDefaults` for this operation. */
  fillDefaults?: boolean;
  handle: Handler<Operation, Principal>;
}

/** One validated request. */
export interface Call<Operation, Principal> {
  readonly operation: OperationDescription;
  readonly params: ParametersOf<Operation, 'path'>;
  readonly query: ParametersOf<Operation, 'query'>;
  /** The header parameters, by their documented names. */
  readonly headers: ParametersOf<Operation, 'header'>;
  readonly body: BodyOf<Operation>;
  /** The authenticated principal; `anonymous` on a public operation. */
  readonly principal: Principal;
  readonly exchange: Exchange;
  /** Logs with the request id. */
  readonly log: Log;
  /** Aborted when the client disconnects before the response is complete. */
  readonly signal: AbortSignal;
  /** Aborted when the server starts to drain; event streams must end then. */
  readonly ending: AbortSignal;
  /** Returns the raw response for code that writes it itself. Return `takenOver` then. */
  takeOver(): ServerResponse;
}

/** The return value of a handler after `call.takeOver()`. */
export const takenOver = Object.freeze({ takenOver: true });

/** Any documented response of an operation that is not an error. */
export type HandlerResponse<Operation> = Operation extends { responses: infer Responses }
  ? { [Status in keyof Responses]: ResponseFor<Status, Responses[Status]> }[keyof Responses]
  : never;

export type ResponseHeaders = Readonly<Record<string, string | number | boolean | undefined>>;

export interface JsonResponse<Status, Body> {
  status: Status;
  body: Body | CachedJson<Body>;
  headers?: ResponseHeaders;
}

export interface EmptyResponse<Status> {
  status: Status;
  body?: undefined;
  headers?: ResponseHeaders;
}

/** Bytes, text or a stream of a documented media type. */
export interface ContentResponse<Status, MediaType> {
  status: Status;
  contentType: MediaType;
  content: string | Uint8Array | Readable | AsyncIterable<string | Uint8Array>;
  headers?: ResponseHeaders;
}

type ResponseFor<Status, Response> = Status extends number
  ? Response extends { content: infer Contents }
    ? ResponseOfContents<Status, Contents>
    : EmptyResponse<Status>
  : never;

type ResponseOfContents<Status, Contents> = {
  [MediaType in keyof Contents]: MediaType extends 'application/json'
    ? JsonResponse<Status, Contents[MediaType]>
    : MediaType extends 'application/problem+json'
      ? never
      : ContentResponse<Status, MediaType>;
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

/** An object without known members. */
type NoParameters = object;

type BodyOf<Operation> = Operation extends { requestBody?: infer Body }
  ? [Exclude<Body, undefined>] extends [never]
    ? undefined
    : | ContentOf<Exclude<Body, undefined>>
      | (Operation extends { requestBody: object } ? never : undefined)
  : undefined;

type ContentOf<Body> = Body extends { content: infer Contents } ? Contents[keyof Contents] : never;

/** A handler without the types of its operation. */
export interface UntypedHandler {
  before: ((call: never) => void | Promise<void>) | undefined;
  checkBody: boolean;
  fillDefaults: boolean | undefined;
  handle: (call: never) => UntypedOutcome | Promise<UntypedOutcome>;
}

export type UntypedOutcome = UntypedResponse | typeof takenOver;

export interface UntypedResponse {
  status: number;
  body?: unknown;
  headers?: ResponseHeaders;
  contentType?: string;
  content?: ContentResponse<number, string>['content'];
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
