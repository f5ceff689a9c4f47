import { foreignClaim, hasBody, mediaTypeOf, shownHeader, type Exchange } from '@millrace/kit/http';
import { refuse } from '../../engine/refusal.js';
import { badField } from '../service/values.js';

/**
 * Without keys, whoever reaches the server may do everything, and a browser on this machine
 * reaches it for any page it shows. So requests of other sites' pages are refused, and bodies that
 * a page may send without asking: forms and plain text.
 */
export function checkOrigin({ headers, request }: Exchange, port: number): void {
  const foreign = foreignClaim(headers, { port, needsLoopbackHost: true });
  if (foreign) {
    throw refuse(
      'BAD_REQUEST',
      `The ${foreign.header} ${shownHeader(foreign.value)} is not this machine. A server without ` +
        'keys answers to localhost alone; give it a keys_file to serve others.',
    );
  }
  const { origin, 'sec-fetch-site': site, 'content-type': type = 'none' } = headers;
  // Programs that are no browsers send neither, and need no type.
  const isFromPage = origin !== undefined || site !== undefined;
  if (!isFromPage || !hasBody(request) || mediaTypeOf(type) === 'application/json') return;
  throw badField('Content-Type', `${type.slice(0, 100)} is not taken: send application/json`);
}
