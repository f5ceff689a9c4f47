import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../config/address.js';

export interface SameSiteRules {
  /** The port that the server listens on. */
  port: number;
  /** True for a server that accepts only loopback host names. */
  needsLoopbackHost: boolean;
}

/** The header that shows a cross-site request; the value is for an error message. */
export interface CrossSiteHeader {
  header: 'Host' | 'Origin' | 'Sec-Fetch-Site';
  value: string | undefined;
}

/**
 * Detects requests that a page of another site sends through a local browser: by Origin, by
 * Sec-Fetch-Site and, against DNS rebinding, by Host. Undefined when the request is allowed.
 */
export function crossSiteHeader(
  headers: IncomingHttpHeaders,
  { port, needsLoopbackHost }: SameSiteRules,
): CrossSiteHeader | undefined {
  const { host, origin, 'sec-fetch-site': site } = headers;
  if (needsLoopbackHost && !isLoopbackHost(host)) return { header: 'Host', value: host };
  if (origin !== undefined && !isOwnOrigin(origin, host, port)) {
    return { header: 'Origin', value: origin };
  }
  if (site === 'cross-site') return { header: 'Sec-Fetch-Site', value: site };
  return undefined;
}

/** A header as an error message shows it. */
export function shownHeader(value: string | undefined): string {
  return value === undefined ? 'header, which is missing,' : JSON.stringify(value.slice(0, 100));
}

/** True when the origin is the requested host or a loopback name with this port. */
function isOwnOrigin(origin: string, host: string | undefined, port: number): boolean {
  const found = /^https?:\/\/([^/?#@\s]+)$/i.exec(origin);
  if (!found) return false;
  const from = found[1]!.toLowerCase();
  if (from === host?.toLowerCase()) return true;
  const { name, port: fromPort } = split(from);
  return isLoopback(name) && fromPort === port && isLoopbackHost(host);
}

/** Cached, because nearly every request has the same Host. */
let lastLoopback: string | undefined;

function isLoopbackHost(host: string | undefined): boolean {
  if (host === undefined) return false;
  if (host === lastLoopback) return true;
  if (!isLoopback(split(host).name)) return false;
  lastLoopback = host;
  return true;
}

function split(host: string): { name: string; port: number | undefined } {
  const withPort = /^(.*):(\d{1,5})$/.exec(host);
  if (!withPort || host.endsWith(']')) return { name: host, port: undefined };
  return { name: withPort[1]!, port: Number(withPort[2]) };
}
