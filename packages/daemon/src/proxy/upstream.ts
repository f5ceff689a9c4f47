import { request as requestHttp, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Clock } from '@millrace/kit/clock';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import { fail } from '../core/refusals.js';
import { databaseAllowlist, queueAllowlist, type Allowlist } from './allowlist.js';

export interface UpstreamRequest {
  method: string;
  /** Raw path and query, with the leading slash. */
  target: string;
  headers: OutgoingHttpHeaders;
  body: Uint8Array | undefined;
  /** Aborted when the caller is gone. */
  signal: AbortSignal;
}

interface UpstreamParts {
  /** Name in messages: `queue server`. */
  name: string;
  url: string;
  /** The setting that holds the url, and the one that holds the credentials. */
  keys: { url: string; credentials: string };
  credentials: OutgoingHttpHeaders;
  allowlist: Allowlist;
  clock: Clock;
}

/** Timeout until the response headers. A redrive takes up to 25 s. */
export const answerTimeoutMs = 35_000;

/** A server that the daemon calls on behalf of the dashboard. */
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

  /** Resolves with the response headers. Refuses with UPSTREAM_UNREACHABLE on failure. */
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
      // The server may close an idle keep-alive connection just as it is reused.
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
      `The ${name} at ${this.#url.origin} rejects the daemon's credentials. ` +
        `Set ${keys.credentials} to a valid one and restart the daemon.`,
    );
  }

  #unreachable(error: unknown): Error {
    const { name, keys } = this.#parts;
    const where = `The ${name} at ${this.#url.origin}`;
    const detail =
      systemCode(error) === 'ECONNREFUSED'
        ? `${where} is not running. Start it with \`ctl up\`, or set ${keys.url} to its address.`
        : `${where} cannot be reached (${messageOf(error)}). Check its log, or set ${keys.url}.`;
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

/** The queue server and the database, with credentials that callers never see. */
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
