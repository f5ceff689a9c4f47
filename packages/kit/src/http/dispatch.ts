import type { IncomingMessage } from 'node:http';
import type { BodyOutcome } from './body.js';
import {
  ConnectionsExceeded,
  MalformedRequest,
  PeerMemoryExceeded,
  type Exchange,
} from './exchange.js';

/**
 * Finds the path template of a request path.
 *
 * Templates may end in a verb, such as `/v1/admin/queues/{queue}:pause`. The path is therefore
 * matched before percent-decoding: a literal `:` in the last segment always starts a verb, and a
 * name that contains one is written with `%3A`, so `a%3Apause` is a name. There are no verbs before
 * a `/`: a name with `:` there reaches the handler, which rejects it.
 *
 * The last parameter of a template may match the rest of the path, including slashes and verbs. It
 * is not decoded.
 */
export class PathRouter<Leaf> {
  readonly #fixed = new Map<string, Leaf>();
  readonly #root: Branch<Leaf> = newBranch();
  readonly #options: RouterOptions;

  constructor(options: RouterOptions = {}) {
    this.#options = options;
  }

  /**
   * `rest` names the parameter that matches the rest of the path. Throws when another template
   * matches the same paths.
   */
  add(template: string, leaf: Leaf, rest?: string): void {
    if (!template.startsWith('/')) throw new Error(`Path ${template} must start with "/"`);
    const segments = template.slice(1).split('/').map(parseSegment);
    if (rest !== undefined) checkRest(template, segments, rest);
    let branch = this.#root;
    for (const segment of segments) branch = childFor(branch, segment, rest);
    if (branch.leaf !== undefined) {
      throw new Error(`Path ${template} matches the same requests as ${branch.template}`);
    }
    branch.leaf = leaf;
    branch.template = template;
    branch.names = segments.flatMap((segment) => segment.name ?? []);
    if (branch.names.length === 0) this.#fixed.set(template, leaf);
  }

  /** `path` is the raw path of the request, without its query. */
  find(path: string): RouteMatch<Leaf> | undefined {
    const fixed = this.#fixed.get(path);
    if (fixed !== undefined) return { leaf: fixed, params: noParams };
    const values: string[] = [];
    const branch = descend(this.#root, path, 1, values, this.#options.isLiteral ?? false);
    if (!branch) return undefined;
    const params: Record<string, string> = {};
    for (let i = 0; i < values.length; i++) {
      const name = branch.names[i]!;
      const value = branch.isRest && i === values.length - 1 ? values[i] : decodeValue(values[i]!);
      if (value === undefined) {
        const refusal = this.#options.undecodable?.(name);
        if (refusal) throw refusal;
        return undefined;
      }
      params[name] = value;
    }
    return { leaf: branch.leaf!, params };
  }
}

interface RouterOptions {
  /** Fixed segments match literally only, and a `:` starts a verb in every segment. */
  isLiteral?: boolean;
  /** The error for a parameter that is not UTF-8; without it such a path does not match. */
  undecodable?: (name: string) => Error;
}

interface RouteMatch<Leaf> {
  leaf: Leaf;
  params: Readonly<Record<string, string>>;
}

interface Branch<Leaf> {
  leaf: Leaf | undefined;
  template: string;
  names: readonly string[];
  fixed: Map<string, Branch<Leaf>>;
  named: { prefix: string; suffix: string; branch: Branch<Leaf> }[];
  /** Matches everything below that no other branch matches. */
  rest: Branch<Leaf> | undefined;
  /** True when the last of `names` matches the rest of the path. */
  isRest: boolean;
}

interface Segment {
  /** The whole segment when it has no parameter. */
  fixed: string;
  name: string | undefined;
  prefix: string;
  suffix: string;
}

const noParams: Readonly<Record<string, string>> = Object.freeze({});
const parameter = /^([^{}]*)\{([^{}]+)\}([^{}]*)$/;
const encodedPlainCharacter = /%(?:2[DE]|3\d|4[1-9A-F]|5[\dAF]|6[1-9A-F]|7[\dAE])/gi;

function newBranch<Leaf>(): Branch<Leaf> {
  return {
    leaf: undefined,
    template: '',
    names: [],
    fixed: new Map(),
    named: [],
    rest: undefined,
    isRest: false,
  };
}

function checkRest(template: string, segments: readonly Segment[], rest: string): void {
  const last = segments.at(-1)!;
  if (last.name === rest && last.prefix === '' && last.suffix === '') return;
  throw new Error(`Path ${template} must end in /{${rest}}, which matches the rest of the path`);
}

function parseSegment(text: string): Segment {
  if (!text.includes('{') && !text.includes('}')) {
    return { fixed: text, name: undefined, prefix: '', suffix: '' };
  }
  const match = parameter.exec(text);
  if (!match) throw new Error(`Path segment ${text} must contain one {parameter}`);
  return { fixed: '', name: match[2]!, prefix: match[1]!, suffix: match[3]! };
}

function childFor<Leaf>(
  branch: Branch<Leaf>,
  segment: Segment,
  rest: string | undefined,
): Branch<Leaf> {
  if (segment.name === undefined) {
    let child = branch.fixed.get(segment.fixed);
    if (!child) branch.fixed.set(segment.fixed, (child = newBranch()));
    return child;
  }
  if (segment.name === rest) {
    branch.rest ??= { ...newBranch<Leaf>(), isRest: true };
    return branch.rest;
  }
  const { prefix, suffix } = segment;
  const known = branch.named.find((named) => named.prefix === prefix && named.suffix === suffix);
  if (known) return known.branch;
  const child = newBranch<Leaf>();
  branch.named.push({ prefix, suffix, branch: child });
  // Segments with longer literal parts are tried first.
  branch.named.sort(
    (a, b) => b.prefix.length + b.suffix.length - a.prefix.length - a.suffix.length,
  );
  return child;
}

function descend<Leaf>(
  branch: Branch<Leaf>,
  path: string,
  start: number,
  values: string[],
  isLiteral: boolean,
): Branch<Leaf> | undefined {
  if (start > path.length) return branch.leaf === undefined ? undefined : branch;
  const slash = path.indexOf('/', start);
  const end = slash === -1 ? path.length : slash;
  const segment = path.slice(start, end);

  const fixed = branch.fixed.get(isLiteral ? segment : plainSpelling(segment));
  if (fixed) {
    const found = descend(fixed, path, end + 1, values, isLiteral);
    if (found) return found;
  }
  for (const { prefix, suffix, branch: child } of branch.named) {
    const value = valueBetween(segment, prefix, suffix);
    const hasVerb = (isLiteral || slash === -1) && value.includes(':');
    if (value === '' || hasVerb) continue;
    values.push(value);
    const found = descend(child, path, end + 1, values, isLiteral);
    if (found) return found;
    values.pop();
  }
  if (!branch.rest || start === path.length) return undefined;
  values.push(path.slice(start));
  return branch.rest;
}

function valueBetween(segment: string, prefix: string, suffix: string): string {
  if (!segment.startsWith(prefix) || !segment.endsWith(suffix)) return '';
  if (segment.length <= prefix.length + suffix.length) return '';
  return segment.slice(prefix.length, segment.length - suffix.length);
}

/** `%71ueues` is `queues` (RFC 3986, 6.2.2.2); `%3A` and `%2F` are not decoded. */
function plainSpelling(segment: string): string {
  if (!segment.includes('%')) return segment;
  return segment.replace(encodedPlainCharacter, (code) => decodeURIComponent(code));
}

function decodeValue(value: string): string | undefined {
  if (!value.includes('%')) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    // Not UTF-8: such a path matches nothing.
    return undefined;
  }
}

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
