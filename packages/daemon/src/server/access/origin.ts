import type { IncomingHttpHeaders } from 'node:http';
import { addressOf } from '@millrace/kit/config';
import { crossSiteHeader, shownHeader, type SameSiteRules } from '@millrace/kit/http';
import { fail } from '../../core/refusals.js';

/**
 * Any page in a local browser can send requests to the daemon, and callers of the daemon can run
 * programs. So requests of other sites' pages are refused.
 */
export function checkOrigin(headers: IncomingHttpHeaders, rules: SameSiteRules): void {
  const foreign = crossSiteHeader(headers, rules);
  if (foreign === undefined) return;
  const { header, value } = foreign;
  if (header === 'Host') {
    throw fail(
      'FORBIDDEN',
      `The Host header ${shownHeader(value)} does not name this machine. A daemon on loopback ` +
        'accepts loopback names only; configure a reverse proxy to send Host: localhost.',
    );
  }
  const pages = header === 'Origin' ? `of ${shownHeader(value)}` : 'of other sites';
  throw fail('FORBIDDEN', `Pages ${pages} may not call this daemon.`);
}

/** The port of an address such as `http://127.0.0.1:8765`. */
export function portOf(url: string): number {
  return addressOf(url.replace(/^https?:\/\//, '')).port;
}
