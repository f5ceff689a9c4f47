import type { IncomingHttpHeaders } from 'node:http';
import type { AppOptions } from './app.js';
import type { BodyParser } from './body.js';
import type { OpenApiDocument, OperationDescription } from './document.js';
import type { Handlers } from './handlers.js';
import type { DocumentSchemas } from './schemas.js';

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
  /** The code of a bad path parameter; without it the operation's `x-invalid-code`. */
  invalidPathCode?: string;
  /** Body limit of operations without `x-body-limit-bytes`. */
  bodyLimitBytes?: number;
  /** Fills schema defaults into query and body. */
  fillDefaults?: boolean;
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
export interface Caller {
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
  handlers: Readonly<Record<string, unknown>>;
};
