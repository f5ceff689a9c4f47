import { request as requestHttp, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Clock } from '@millrace/kit/clock';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import { fail } from '../core/refusals.js';
import { databaseAllowlist, queueAllowlist, type Allowlist } from './allowlist.js';

export interface UpstreamRequest {
  method: string;
  /** Path and query as they were sent, with the first slash. */
  target: string;
  headers: OutgoingHttpHeaders;
  body: Uint8Array | undefined;
  /** Aborted when nobody waits for the answer any more. */
  signal: AbortSignal;
}

interface UpstreamParts {
  /** As it is called in messages: `queue server`. */
  name: string;
  url: string;
  /** The setting that holds the url, and the one that holds the credentials. */
  keys: { url: string; credentials: string };
  credentials: OutgoingHttpHeaders;
  allowlist: Allowlist;
  clock: Clock;
}

/** How long an answer may take to begin. A redrive works for 25 s before it answers. */
export const answerTimeoutMs = 35_000;

/** A server of the operator's own that the daemon speaks to in the place of its pages. */
export class Upstream {
  readonly name: string;
  readonly allowlist: Allowlist;
  readonly clock: Clock;
  readonly #parts: UpstreamParts;
  readonly #url: URL;

  constructor(parts: UpstreamParts) {
    if (!URL.canParse(parts.url)) {
      throw new UsageError(`${parts.keys.url} must be a URL such as http://127.0.0.1:8081`);
    }
    this.#url = new URL(parts.url);
    this.#parts = parts;
    this.name = parts.name;
    this.allowlist = parts.allowlist;
    this.clock = parts.clock;
  }

  /** The answer once its head is there. Refuses with UPSTREAM_UNREACHABLE when none comes. */
  async request({
    method,
    target,
    headers,
    body,
    signal,
  }: UpstreamRequest): Promise<IncomingMessage> {
    const { protocol, hostname, port, pathname } = this.#url;
    const isHttps = protocol === 'https:';
    const sending = (isHttps ? requestHttps : requestHttp)({
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? (isHttps ? 443 : 80) : Number(port),
      method,
      path: pathname.replace(/\/$/, '') + target,
      headers: {
        ...headers,
        ...this.#parts.credentials,
        'accept-encoding': 'identity',
        ...(body && { 'content-length': body.byteLength }),
      },
      // A kept connection may be closed by the other side at the very moment it is used again.
      agent: false,
      signal,
    });
    const waiting = this.clock.after(answerTimeoutMs, () => {
      sending.destroy(new Error(`no answer within ${answerTimeoutMs / 1000} s`));
    });
    try {
      return await new Promise<IncomingMessage>((resolve, reject) => {
        sending.on('response', resolve);
        sending.on('error', reject);
        sending.end(body);
      });
    } catch (error) {
      throw this.#unreachable(error);
    } finally {
      waiting.cancel();
    }
  }

  refused(): Error {
    const { name, keys } = this.#parts;
    return fail(
      'UPSTREAM_REFUSED',
      `The ${name} at ${this.#url.origin} does not know the daemon: ` +
        `set ${keys.credentials} to one that it knows and start the daemon again.`,
    );
  }

  #unreachable(error: unknown): Error {
    const { name, keys } = this.#parts;
    const where = `The ${name} at ${this.#url.origin}`;
    const detail =
      systemCode(error) === 'ECONNREFUSED'
        ? `${where} is not running. Start it with \`ctl up\`, or set ${keys.url} to where it is.`
        : `${where} cannot be reached (${messageOf(error)}). Look at its log, or set ${keys.url}.`;
    return fail('UPSTREAM_UNREACHABLE', detail, { cause: error });
  }
}

export interface UpstreamSettings {
  queue: { url: string; token?: string | undefined };
  database: { url: string; api_key?: string | undefined };
}

export interface Upstreams {
  queue: Upstream;
  database: Upstream;
}

/** The two servers behind the daemon, with the credentials that stay on this side. */
export function upstreamsOf({ queue, database }: UpstreamSettings, clock: Clock): Upstreams {
  return {
    queue: new Upstream({
      name: 'queue server',
      url: queue.url,
      keys: { url: 'queue.url', credentials: 'queue.token' },
      credentials: queue.token === undefined ? {} : { authorization: `Bearer ${queue.token}` },
      allowlist: queueAllowlist,
      clock,
    }),
    database: new Upstream({
      name: 'database',
      url: database.url,
      keys: { url: 'database.url', credentials: 'database.api_key' },
      credentials: database.api_key === undefined ? {} : { 'x-api-key': database.api_key },
      allowlist: databaseAllowlist,
      clock,
    }),
  };
}
