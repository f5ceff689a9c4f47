import { isIP } from 'node:net';
import { UsageError } from '@millrace/kit/errors';

/** Whether a URL is a loopback address, to which our secrets may be sent. */
export function isLocalUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** The URL without a trailing slash. `source` names it in the error. */
export function checkedUrl(text: string, source: string, example: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw new UsageError(`${source} must be a URL such as ${example}, not "${text}".`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
