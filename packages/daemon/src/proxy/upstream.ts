import { request as requestHttp, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as requestHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import type { Clock } from '@millrace/kit/clock';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import { fail } from '../core/api.js';
import { databaseAllowlist, queueAllowlist, type Allowlist } from './allowlist.js';
import { LeaderChoice, type NodeRole } from './leader-choice.js';

export interface UpstreamRequest {
  method: string;
  /** Raw path and query, with the leading slash. */
  target: string;
  headers: OutgoingHttpHeaders;
  body: Uint8Array | undefined;
  /** Aborted when the caller has disconnected. */
  signal: AbortSignal;
}

interface UpstreamParts {
  /** Name in messages: `queue server`. */
  name: string;
  /** One address, or those of the nodes of a cluster, separated by commas. */
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
  readonly #leader: LeaderChoice;

  constructor(private readonly parts: UpstreamParts) {
    const [first, ...others] = parts.url.split(',').map((text) => text.trim());
    if (![first!, ...others].every((url) => URL.canParse(url))) {
      throw new UsageError(`${parts.keys.url} must be a URL such as http://127.0.0.1:8081`);
    }
    this.#leader = new LeaderChoice({
      urls: [new URL(first!), ...others.map((url) => new URL(url))],
      roleOf: (url, signal) => this.#roleOf(url, signal),
      clock: parts.clock,
    });
    this.name = parts.name;
    this.allowlist = parts.allowlist;
    this.clock = parts.clock;
  }

  /** Resolves with the response headers. Refuses with UPSTREAM_UNREACHABLE on failure. */
  async request(request: UpstreamRequest): Promise<IncomingMessage> {
    const url = await this.#leader.url();
    try {
      return await this.#send(url, request);
    } catch (error) {
      this.#leader.forget();
      throw this.#unreachable(url, error);
    }
  }

  async #send(
    { protocol, hostname, port, pathname }: URL,
    { method, target, headers, body, signal }: UpstreamRequest,
  ): Promise<IncomingMessage> {
    const isHttps = protocol === 'https:';
    const sending = (isHttps ? requestHttps : requestHttp)({
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? (isHttps ? 443 : 80) : Number(port),
      method,
      path: pathname.replace(/\/$/, '') + target,
      headers: {
        ...headers,
        ...this.parts.credentials,
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
    } finally {
      waiting.cancel();
    }
  }

  async #roleOf(url: URL, signal: AbortSignal): Promise<NodeRole> {
    const target = '/v1/admin/replication';
    const request = { method: 'GET', target, headers: {}, body: undefined, signal };
    const answer = await this.#send(url, request);
    const status = JSON.parse(await text(answer)) as Partial<Record<keyof NodeRole, unknown>>;
    return { role: String(status.role), epoch: Number(status.epoch) };
  }

  refused(): Error {
    const { name, keys, url } = this.parts;
    return fail(
      'UPSTREAM_REFUSED',
      `The ${name} at ${originsOf(url)} rejects the daemon's credentials. ` +
        `Set ${keys.credentials} to a valid one and restart the daemon.`,
    );
  }

  #unreachable({ origin }: URL, error: unknown): Error {
    const { name, keys } = this.parts;
    const where = `The ${name} at ${origin}`;
    const detail =
      systemCode(error) === 'ECONNREFUSED'
        ? `${where} is not running. Start it with \`ctl up\`, or set ${keys.url} to its address.`
        : `${where} cannot be reached (${messageOf(error)}). Check its log, or set ${keys.url}.`;
    return fail('UPSTREAM_UNREACHABLE', detail, { cause: error });
  }
}

function originsOf(urls: string): string {
  return urls
    .split(',')
    .map((url) => new URL(url.trim()).origin)
    .join(', ');
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
