import {
  crossSiteHeader,
  hasBody,
  mediaTypeOf,
  shownHeader,
  type Exchange,
} from '@millrace/kit/http';
import { refuse } from '@millrace/engine/value/refusal';
import { badField } from '../service/values.js';

/**
 * Protects a server without keys from web pages in a local browser: refuses foreign Host, Origin
 * and Sec-Fetch-Site headers, and, from browsers, bodies that need no CORS preflight (forms, plain
 * text). A client that sends neither Origin nor Sec-Fetch-Site is not a browser; its body is
 * accepted with any Content-Type or none, so that plain `curl -d` keeps working.
 */
export function checkOrigin({ headers, request }: Exchange, port: number): void {
  const foreign = crossSiteHeader(headers, { port, needsLoopbackHost: true });
  if (foreign) {
    throw refuse(
      'BAD_REQUEST',
      `The ${foreign.header} ${shownHeader(foreign.value)} is not this machine. A server without ` +
        'keys serves localhost only. Configure a keys_file to serve other hosts.',
    );
  }
  const { origin, 'sec-fetch-site': site, 'content-type': type = 'none' } = headers;
  // Browsers send at least one of these with every cross-site request that has a body.
  const isFromPage = origin !== undefined || site !== undefined;
  if (!isFromPage || !hasBody(request) || mediaTypeOf(type) === 'application/json') return;
  throw badField('Content-Type', `${type.slice(0, 100)} is not supported: send application/json`);
}
