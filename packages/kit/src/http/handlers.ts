import type { ServerResponse, IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Log } from '../base/log.js';
import type { OperationDescription, OpenApiDocument } from './document.js';
import type { Exchange } from './exchange.js';
import type { AppOptions } from './app.js';
import type { BodyParser } from './body.js';
import type { DocumentSchemas } from './schemas.js';

/**
 * The handlers of a server, one per operation. `Operations` is the interface of that name that
 * openapi-typescript generates, so a missing, misnamed or mistyped handler does not compile.
 */
export type Handlers<Operations extends object, Principal> = {
  [Id in keyof Operations]: Handler<Operations[Id], Principal>;
};

export type Handler<Operation, Principal> = (
  call: Call<Operation, Principal>,
) => Outcome<Operation> | Promise<Outcome<Operation>>;

type Outcome<Operation> = HandlerResponse<Operation> | typeof takenOver;

/** A handler that responds with the result of an operation. */
export const answering =
  <Status extends number>(status: Status) =>
  <Call, Body>(operation: (call: Call) => Promise<Body> | Body) =>
  async (call: Call) => ({ status, body: await operation(call) });

/** A handler that responds 200 with the result of an operation. */
export const ok = answering(200);

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

type ResponseHeaders = Readonly<Record<string, string | number | boolean | undefined>>;

interface JsonResponse<Status, Body> {
  status: Status;
  body: Body | CachedJson<Body>;
  headers?: ResponseHeaders;
}

interface EmptyResponse<Status> {
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
export type UntypedHandler = (call: never) => UntypedOutcome | Promise<UntypedOutcome>;

export type UntypedOutcome = UntypedResponse | typeof takenOver;

export interface UntypedResponse {
  status: number;
  body?: unknown;
  headers?: ResponseHeaders;
  contentType?: string;
  content?: ContentResponse<number, string>['content'];
}

export interface BindOptions<Operations extends object, Principal> extends AppOptions {
  /** The parsed OpenAPI document that the server serves. */
  document: OpenApiDocument;
  handlers: Handlers<Operations, Principal>;
  /** Runs first on every request, for checks of Host and Origin. */
  admit?: (caller: Caller) => void;
  /** Authenticates the request; throws the server's refusal for 401. */
  authenticate: (caller: Caller) => Principal | Promise<Principal>;
  /** Authorizes the request; throws the server's refusal for 403. */
  authorize?: (
    principal: Principal,
    operation: OperationDescription,
    params: Readonly<Record<string, string>>,
  ) => void | Promise<void>;
  /** The principal of public operations. */
  anonymous: Principal;
  /** Name of the principal in the access log. */
  principalName?: (principal: Principal) => string;
  /** Paths at and below these need a token even when no route matches: `/v1`. */
  protectedPrefixes: readonly string[];
  /** The code of a bad query; without it the operation's `x-invalid-code`. */
  invalidQueryCode?: string;
  /** Body limit of operations without `x-body-limit-bytes`. */
  bodyLimitBytes?: number;
  /** Fills schema defaults into query and body. */
  fillDefaults?: boolean;
  /** Bodies are only parsed: the handlers check them, after what is to be found out first. */
  handlersCheckBodies?: boolean;
  /** Parsers of request bodies other than JSON, by media type. */
  bodyParsers?: Readonly<Record<string, BodyParser>>;
  /** Tracks requests in flight after authentication. */
  load?: RequestLoad;
  /** Operations whose schemas are compiled at startup, so that the first call is fast. */
  precompiledOperations?: readonly string[];
  /** The schemas of `document`, if the server has created them already. */
  schemas?: DocumentSchemas;
  /** Called for every response that the document does not describe. For tests. */
  onUndocumentedResponse?: (difference: string) => void;
}

/** The client of a request. */
interface Caller {
  readonly headers: IncomingHttpHeaders;
  readonly ip: string;
}

export interface RequestLoad {
  /** A request has started; `bodyBytes` by its Content-Length. */
  enter(bodyBytes: number): void;
  /** The request has ended. */
  leave(bodyBytes: number): void;
}

/** The options without the types of the operations. */
export type UntypedOptions = Omit<BindOptions<object, unknown>, 'handlers'> & {
  handlers: Readonly<Record<string, UntypedHandler>>;
};

/**
 * A body whose JSON is serialized once, for responses that many clients get before they change. Do
 * not modify the value.
 */
export class CachedJson<Body> {
  #text: string | undefined;

  constructor(readonly value: Body) {}

  get text(): string {
    return (this.#text ??= JSON.stringify(this.value));
  }

  toJSON(): Body {
    return this.value;
  }
}

/** Caches the JSON of the last value, by identity. */
export function cacheJson<Body extends object>(): (value: Body) => CachedJson<Body> {
  let cached: CachedJson<Body> | undefined;
  return (value) => {
    if (cached?.value !== value) cached = new CachedJson(value);
    return cached;
  };
}
