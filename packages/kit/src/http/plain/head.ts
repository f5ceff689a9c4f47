import type { IncomingHttpHeaders } from 'node:http';

/** The head of a request that needs none of HTTP's finer points. */
export interface PlainHead {
  readonly method: string;
  /** As it was sent; it has no query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bodyBytes: number;
}

const requestLine = /^(GET|POST|PUT|DELETE) (\/[A-Za-z0-9._~!$&'()*+,;=:@/-]*) HTTP\/1\.1$/;
const name = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const value = /^[\t -~]*$/;
const length = /^\d{1,7}$/;
const mostHeaders = 48;

// They change how the request is read, or how the connection goes on.
const finerPoints = new Set([
  'expect',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  '__proto__',
]);

/**
 * Reads a head, without the empty line at its end. Undefined for everything that is not plain to
 * see, be it right or wrong: Node's parser judges that. So this one must never take what that one
 * would refuse, or read it otherwise.
 */
export function readPlainHead(text: string): PlainHead | undefined {
  const lines = text.split('\r\n');
  const [, method, path] = requestLine.exec(lines[0]!) ?? [];
  if (method === undefined || path === undefined || lines.length > mostHeaders) return undefined;
  const headers: Record<string, string> = {};
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i]!;
    const colon = line.indexOf(':');
    if (colon < 1) return undefined;
    const key = line.slice(0, colon).toLowerCase();
    const text = line.slice(colon + 1);
    // A header that is there twice has rules of its own.
    if (!name.test(key) || !value.test(text) || Object.hasOwn(headers, key)) return undefined;
    if (finerPoints.has(key)) return undefined;
    headers[key] = text.trim();
  }
  const { host, connection = 'keep-alive', 'content-length': bodyBytes = '0' } = headers;
  if (!host || connection.toLowerCase() !== 'keep-alive' || !length.test(bodyBytes)) {
    return undefined;
  }
  return { method, path, headers, bodyBytes: Number(bodyBytes) };
}
