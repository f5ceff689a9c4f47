import type { IncomingHttpHeaders } from 'node:http';
import { addressOf } from '@millrace/kit/config';
import { foreignClaim, shownHeader, type OwnSiteRules } from '@millrace/kit/http';
import { fail } from '../../core/refusals.js';

/**
 * A browser on this machine reaches the daemon for any page it shows, and whoever can talk to the
 * daemon can run programs. So requests of other sites' pages are refused.
 */
export function checkOrigin(headers: IncomingHttpHeaders, rules: OwnSiteRules): void {
  const foreign = foreignClaim(headers, rules);
  if (foreign === undefined) return;
  const { header, value } = foreign;
  if (header === 'Host') {
    throw fail(
      'FORBIDDEN',
      `The Host ${shownHeader(value)} is not this machine. A daemon that listens on loopback answers ` +
        'to localhost alone; behind a proxy, let that send Host: localhost.',
    );
  }
  const pages = header === 'Origin' ? `of ${shownHeader(value)}` : 'of other sites';
  throw fail('FORBIDDEN', `Pages ${pages} may not talk to this daemon.`);
}

/** The port of an address such as `http://127.0.0.1:8765`. */
export function portOf(url: string): number {
  return addressOf(url.replace(/^https?:\/\//, '')).port;
}
