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
  /** Runs first of all, on every request: the place for a check of Host and Origin. */
  admit?: (caller: Caller) => void;
  /** Who is calling? Refuses with the server's code for 401. */
  authenticate: (caller: Caller) => Principal | Promise<Principal>;
  /** May this caller do that? Refuses with the server's code for 403. */
  authorize?: (
    principal: Principal,
    operation: OperationDescription,
    params: Readonly<Record<string, string>>,
  ) => void | Promise<void>;
  /** Who the caller of a public operation is. */
  anonymous: Principal;
  /** The caller's name in the access log. */
  principalName?: (principal: Principal) => string;
  /** Paths at and below these need a token even when nothing is there: `/v1`. */
  protectedPrefixes: readonly string[];
  /** The code of a bad query; without it the operation's `x-invalid-code`. */
  invalidQueryCode?: string;
  /** The code of a bad path parameter; without it the operation's `x-invalid-code`. */
  invalidPathCode?: string;
  /** Body limit of operations without `x-body-limit-bytes`. */
  bodyLimitBytes?: number;
  /** Fills the defaults of the schemas into query and body. */
  fillDefaults?: boolean;
  /** Parsers of request bodies other than JSON, by media type. */
  bodyParsers?: Readonly<Record<string, BodyParser>>;
  /** Told of every request that has a caller, from its first byte to the last of its answer. */
  load?: RequestLoad;
  /** Operations whose first call must be as quick as the others: their checks are made at once. */
  readyOperations?: readonly string[];
  /** The schemas of `document`, where the server has made them already. */
  schemas?: DocumentSchemas;
  /** Hears of every answer that the document does not describe. For tests. */
  onUndocumentedAnswer?: (difference: string) => void;
}

/** Who asks, as far as HTTP tells. */
export interface Caller {
  readonly headers: IncomingHttpHeaders;
  readonly ip: string;
}

export interface RequestLoad {
  /** A request has come, with a body of so many bytes as far as it says. */
  enter(bodyBytes: number): void;
  /** It is answered, or its caller has left. */
  leave(bodyBytes: number): void;
}

/** The options without the types of the operations, for the glue itself. */
export type UntypedOptions = Omit<BindOptions<object, unknown>, 'handlers'> & {
  handlers: Readonly<Record<string, unknown>>;
};
