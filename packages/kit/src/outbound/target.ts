import { isIP } from 'node:net';
import { lookup } from 'node:dns/promises';
import type { Clock } from '../base/clock-and-random.js';

export type Scheme = 'http' | 'https' | 'grpc' | 'grpcs';

/**
 * A parsed URL. The check and the connection both use these fields, so that two parsers cannot
 * disagree about the text.
 */
export interface Target {
  readonly scheme: Scheme;
  /** Lower case, ASCII, without a trailing dot; an IPv6 address without brackets. */
  readonly host: string;
  /** True when `host` is an IP address. */
  readonly isAddress: boolean;
  readonly port: number;
  /** `host[:port]`, the port only when it is not the scheme's own: what a Host header says. */
  readonly authority: string;
  /** `scheme://authority`. */
  readonly origin: string;
  readonly pathname: string;
  /** What goes on the request line: the path and the query. A fragment is never sent. */
  readonly path: string;
}

export type TargetResult = { ok: true; target: Target } | { ok: false; reason: string };

export const defaultPorts = { http: 80, https: 443, grpc: 80, grpcs: 443 } as const;

const httpSchemes = ['http', 'https'] as const;

const maxUrlLength = 8192;
const hostName = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;

/** Parses a URL that will be called with gRPC: it has no path. */
export function parseGrpcTarget(text: string): TargetResult {
  // The URL parser normalizes hosts of the schemes it knows only.
  const [, name = '', rest = ''] = /^(grpcs?)(:\/\/[^/\\].*)$/is.exec(text) ?? [];
  const scheme = name.toLowerCase() as 'grpc' | 'grpcs' | '';
  if (scheme === '') return refuse('The URL must start with grpc:// or grpcs://');
  const parsed = parseTarget(`${scheme === 'grpc' ? 'http' : 'https'}${rest}`);
  if (!parsed.ok) return parsed;
  const { target } = parsed;
  if (target.path !== '/' || rest.includes('#'))
    return refuse('A gRPC URL has no path and no query');
  return { ok: true, target: { ...target, scheme, origin: `${scheme}://${target.authority}` } };
}

/** Parses a URL of any protocol. */
export function parseAnyTarget(text: string): TargetResult {
  return /^grpcs?:/i.test(text) ? parseGrpcTarget(text) : parseTarget(text);
}

/** Parses a URL that will be called with HTTP. */
export function parseTarget(text: string): TargetResult {
  if (text.length > maxUrlLength)
    return refuse(`The URL is longer than ${maxUrlLength} characters`);
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return refuse('The URL cannot be read; write it as https://host/path');
  }
  const scheme = httpSchemes.find((known) => url.protocol === `${known}:`);
  if (scheme === undefined) return refuse('The URL must start with http:// or https://');
  if (url.username !== '' || url.password !== '') {
    return refuse('The URL must not carry a user name or password');
  }
  const host = plainHost(url.hostname);
  if (host === undefined) return refuse(`"${url.hostname}" is not a host name`);
  const port = url.port === '' ? defaultPorts[scheme] : Number(url.port);
  if (port === 0) return refuse('Port 0 cannot be called');
  return { ok: true, target: targetOf(url, scheme, host, port) };
}

function targetOf(url: URL, scheme: 'http' | 'https', host: string, port: number): Target {
  const version = isIP(host);
  const shownPort = url.port === '' ? '' : `:${url.port}`;
  const authority = `${version === 6 ? `[${host}]` : host}${shownPort}`;
  return {
    scheme,
    host,
    isAddress: version !== 0,
    port,
    authority,
    origin: `${scheme}://${authority}`,
    pathname: url.pathname,
    path: url.pathname + url.search,
  };
}

/** The host of a parsed URL without brackets and trailing dot; undefined if no DNS name. */
export function plainHost(hostname: string): string | undefined {
  if (hostname.startsWith('[')) return hostname.slice(1, -1);
  const host = hostname.endsWith('.') ? hostname.slice(0, -1) : hostname;
  return host.length <= 253 && hostName.test(host) ? host : undefined;
}

function refuse(reason: string): TargetResult {
  return { ok: false, reason };
}

/** The addresses of a host name in the order in which to try them; rejects when there are none. */
export type Resolver = (host: string) => Promise<readonly string[]>;

/** The system resolver: hosts file, search domains, DNS. */
export const systemResolver: Resolver = async (host) => {
  const answers = await lookup(host, { all: true, verbatim: true });
  return answers.map((answer) => answer.address);
};

// Long enough to serve a burst, short enough that one stuck lookup does not hold a host for good.
const sharedForMs = 5_000;

/**
 * Shares one lookup between concurrent requests for a name. The system resolver has four threads,
 * which a burst of new connections would block. Results are not cached.
 */
export function sharedLookups(resolver: Resolver, clock: Clock): Resolver {
  const running = new Map<string, { startedAt: number; answer: Promise<readonly string[]> }>();
  return (host) => {
    const startedAt = clock.monotonic();
    const current = running.get(host);
    if (current !== undefined && startedAt - current.startedAt < sharedForMs) return current.answer;
    const answer = resolver(host).finally(() => {
      if (running.get(host)?.answer === answer) running.delete(host);
    });
    running.set(host, { startedAt, answer });
    return answer;
  };
}
