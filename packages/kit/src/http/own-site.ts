import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../config/address.js';

export interface OwnSiteRules {
  /** The port that the server listens at. */
  port: number;
  /** True for a server that answers to names of this machine alone. */
  needsLoopbackHost: boolean;
}

/** What a request claims that a page of another site would; the value is for an error message. */
export interface ForeignClaim {
  header: 'Host' | 'Origin' | 'Sec-Fetch-Site';
  value: string | undefined;
}

/**
 * Finds out whether a page of another site sends a request through a browser on this machine: by
 * its Origin, by Sec-Fetch-Site, and, where its name was made to point here (DNS rebinding), by
 * the Host that it asks for. Undefined: the request is fine.
 */
export function foreignClaim(
  headers: IncomingHttpHeaders,
  { port, needsLoopbackHost }: OwnSiteRules,
): ForeignClaim | undefined {
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

/** The page came from here: from the very host that is asked, or from this machine's own name. */
function isOwnOrigin(origin: string, host: string | undefined, port: number): boolean {
  const found = /^https?:\/\/([^/?#@\s]+)$/i.exec(origin);
  if (!found) return false;
  const from = found[1]!.toLowerCase();
  if (from === host?.toLowerCase()) return true;
  const { name, port: fromPort } = split(from);
  return isLoopback(name) && fromPort === port && isLoopbackHost(host);
}

/** Nearly every request names the same host as the one before it. */
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
