import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '@millrace/kit/config';
import { refuse } from '../../engine/refusal.js';

// Nearly all requests ask for the same host, and looking at it costs more than comparing it.
let lastHost = '';

/**
 * Without keys, whoever reaches the server may do everything, and a browser on this machine
 * reaches it for any page it shows. So a page of another site is told apart: by its origin, and,
 * where its name was made to point here, by the host it asks for.
 */
export function checkOrigin({ host, origin }: IncomingHttpHeaders): void {
  if (host !== undefined && host !== lastHost) {
    if (!isLoopback(hostOf(host))) throw foreign('Host', host);
    lastHost = host;
  }
  if (origin !== undefined && !isLocalOrigin(origin)) throw foreign('Origin', origin);
}

function hostOf(header: string): string {
  return header.replace(/:\d+$/, '');
}

function isLocalOrigin(origin: string): boolean {
  const found = /^https?:\/\/([^/]+)$/.exec(origin);
  return found !== null && isLoopback(hostOf(found[1]!));
}

function foreign(header: string, value: string): Error {
  return refuse(
    'BAD_REQUEST',
    `The ${header} ${JSON.stringify(value.slice(0, 100))} is not this machine. A server without ` +
      'keys answers to localhost alone; give it a keys_file to serve others.',
  );
}
