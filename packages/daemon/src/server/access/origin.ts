import type { IncomingHttpHeaders } from 'node:http';
import { addressOf, isLoopback } from '@millrace/kit/config';
import { fail } from '../../core/refusals.js';

/**
 * A browser on this machine reaches the daemon for any page it shows, and whoever can talk to the
 * daemon can run programs. So a page of another site is told apart: by its origin, and, where its
 * name was made to point here, by the host it asks for.
 */
export function checkOrigin(
  headers: IncomingHttpHeaders,
  { port, needsLoopbackHost }: { port: number; needsLoopbackHost: boolean },
): void {
  const { host, origin } = headers;
  if (needsLoopbackHost && !isLoopbackAddress(host)) {
    throw fail(
      'FORBIDDEN',
      `The Host ${shown(host)} is not this machine. A daemon that listens on loopback answers ` +
        'to localhost alone; behind a proxy, let that send Host: localhost.',
    );
  }
  if (origin !== undefined && !isOwnOrigin(origin, host, port)) {
    throw fail('FORBIDDEN', `Pages of ${shown(origin)} may not talk to this daemon.`);
  }
  if (headers['sec-fetch-site'] === 'cross-site') {
    throw fail('FORBIDDEN', 'Pages of other sites may not talk to this daemon.');
  }
}

/** The page came from here: from the very host that is asked, or from this machine's own name. */
function isOwnOrigin(origin: string, host: string | undefined, port: number): boolean {
  const found = /^https?:\/\/([^/?#@\s]+)$/i.exec(origin);
  if (!found) return false;
  const from = found[1]!.toLowerCase();
  if (from === host?.toLowerCase()) return true;
  const { name, port: fromPort } = split(from);
  return isLoopback(name) && fromPort === port && isLoopbackAddress(host);
}

/** Nearly every request names the same host as the one before it. */
let lastLoopback: string | undefined;

function isLoopbackAddress(host: string | undefined): boolean {
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

function shown(value: string | undefined): string {
  return value === undefined ? 'header, which is missing,' : JSON.stringify(value.slice(0, 100));
}

/** The port of an address such as `http://127.0.0.1:8765`. */
export function portOf(url: string): number {
  return addressOf(url.replace(/^https?:\/\//, '')).port;
}
