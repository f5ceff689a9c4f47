import type { IncomingMessage } from 'node:http';
import type { BodyOutcome } from './body.js';
import { ConnectionsExceeded, MalformedRequest, PeerMemoryExceeded } from './exchange.js';
import type { Exchange } from './exchange.js';
import { PathRouter } from './router.js';

/** Serves one method of one path. */
export interface Endpoint {
  /** True when no authentication is needed. */
  readonly isPublic: boolean;
  /** False where HEAD is not supported. */
  readonly takesHead?: boolean;
  /** Undefined: the body is not read. */
  readonly bodyLimitBytes: number | undefined;
  /** True when `serve` reads the body of this request itself, as a stream. */
  readonly streamsBody?: ((exchange: Exchange) => boolean) | undefined;
}

/** All endpoints of one path. */
export interface PathEntry<One extends Endpoint> {
  readonly methods: Map<string, One>;
  /** The value of `Allow`. */
  allow: string;
  /** True when 405 is sent without authentication. */
  isPublic: boolean;
}

/** The checks of a server. A step rejects a request by throwing. */
export interface Steps<One extends Endpoint> {
  /** Paths at and below these need authentication even when no route matches. */
  readonly protectedPrefixes: readonly string[];
  /** Checks Host and Origin. */
  admit?(exchange: Exchange, endpoint: One | undefined): void;
  /** Authenticates the client from the headers. */
  identify(exchange: Exchange, endpoint: One | undefined, isNeeded: boolean): void | Promise<void>;
  authorize?(exchange: Exchange, endpoint: One): void | Promise<void>;
  /** Media type, syntax, parameters and schema, then the operation itself. */
  serve(exchange: Exchange, endpoint: One, body: Buffer | 'too large' | undefined): unknown;
  notFound(exchange: Exchange): Error;
  methodNotAllowed(exchange: Exchange, allow: string): Error;
  /** Sends an error response. Must not throw. */
  fail(exchange: Exchange, error: unknown, endpoint: One | undefined): void;
}

/**
 * Runs the checks of every request in one order: Host, route, authentication, 404 and 405,
 * authorization, memory, size; then `serve` checks media type, body, parameters and schema. A body
 * is buffered only after authentication.
 */
export class Dispatcher<One extends Endpoint> {
  readonly #entries = new Map<string, PathEntry<One>>();

  constructor(
    private readonly steps: Steps<One>,
    readonly router = new PathRouter<PathEntry<One>>(),
  ) {}

  /** `rest` names the parameter that matches the rest of the path. */
  add(method: string, path: string, endpoint: One, rest?: string): PathEntry<One> {
    let entry = this.#entries.get(path);
    if (!entry) {
      entry = { methods: new Map(), allow: '', isPublic: true };
      this.#entries.set(path, entry);
      this.router.add(path, entry, rest);
    }
    const { methods } = entry;
    if (methods.has(method)) throw new Error(`${method} ${path} is already registered`);
    methods.set(method, endpoint);
    if (method === 'GET' && endpoint.takesHead !== false) methods.set('HEAD', endpoint);
    entry.allow = [...methods.keys()].sort().join(', ');
    entry.isPublic &&= endpoint.isPublic;
    return entry;
  }

  /** Never throws. */
  handle(exchange: Exchange): void {
    let endpoint: One | undefined;
    try {
      if (hasTwoHosts(exchange.request)) {
        throw new MalformedRequest('The request has more than one Host header.');
      }
      const match = this.router.find(exchange.path);
      const entry = match?.leaf;
      endpoint = entry?.methods.get(exchange.method);
      if (match) exchange.params = match.params;
      this.steps.admit?.(exchange, endpoint);
      const isPublic = (endpoint ?? entry)?.isPublic ?? !this.#isProtected(exchange.path);
      const identified = this.steps.identify(exchange, endpoint, !isPublic);
      if (identified instanceof Promise) {
        identified
          .then(() => this.#route(exchange, entry, endpoint, isPublic))
          .catch((error: unknown) => this.steps.fail(exchange, error, endpoint));
      } else {
        this.#route(exchange, entry, endpoint, isPublic);
      }
    } catch (error) {
      this.steps.fail(exchange, error, endpoint);
    }
  }

  #isProtected(path: string): boolean {
    return this.steps.protectedPrefixes.some(
      (prefix) => path === prefix || path.startsWith(`${prefix}/`),
    );
  }

  #route(
    exchange: Exchange,
    entry: PathEntry<One> | undefined,
    endpoint: One | undefined,
    isPublic: boolean,
  ): void {
    if (!isPublic && !exchange.peer.slot.authenticate(exchange.principalName)) {
      exchange.closesConnection = true;
      throw new ConnectionsExceeded();
    }
    if (!entry) throw this.steps.notFound(exchange);
    if (!endpoint) throw this.steps.methodNotAllowed(exchange, entry.allow);
    const allowed = this.steps.authorize?.(exchange, endpoint);
    if (allowed instanceof Promise) {
      allowed
        .then(() => this.#receive(exchange, endpoint))
        .catch((error: unknown) => this.steps.fail(exchange, error, endpoint));
    } else {
      this.#receive(exchange, endpoint);
    }
  }

  #receive(exchange: Exchange, endpoint: One): void {
    if (!endpoint.isPublic && exchange.peer.account.isNearlyFull) throw new PeerMemoryExceeded();
    if (endpoint.streamsBody?.(exchange)) {
      exchange.isBodyStreamed = true;
      return this.#serve(exchange, endpoint, undefined);
    }
    if (endpoint.bodyLimitBytes === undefined) return this.#serve(exchange, endpoint, undefined);
    exchange.readBody(endpoint.bodyLimitBytes, (body) => this.#serve(exchange, endpoint, body));
  }

  #serve(exchange: Exchange, endpoint: One, body: BodyOutcome | undefined): void {
    try {
      if (body === 'no memory') throw new PeerMemoryExceeded();
      const served = this.steps.serve(exchange, endpoint, body);
      if (served instanceof Promise) {
        served.catch((error: unknown) => this.steps.fail(exchange, error, endpoint));
      }
    } catch (error) {
      this.steps.fail(exchange, error, endpoint);
    }
  }
}

/** Servers disagree about which of several Host headers counts (RFC 9112, 3.2). */
function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && (name === 'Host' || name.toLowerCase() === 'host')) hosts++;
  }
  return hosts > 1;
}
