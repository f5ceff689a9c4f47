/** Status line and header fields. Cached for equal responses: do not modify it. */
export interface ResponseHead {
  readonly status: number;
  /** Names in lower case; a header that came more than once is a list. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly framing: Framing;
  /** Whether the connection can be reused. */
  readonly keepsAlive: boolean;
  /** The timeout of the Keep-Alive header. */
  readonly keepAliveMs: number | undefined;
}

/** How the end of the body is determined (RFC 9112, 6.3). */
export type Framing =
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunks' }
  | { readonly kind: 'close' };

/** The fields that determine where a response ends. */
export const framingFields: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding']);

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t -~\x80-\xff]*)?$/;
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const fieldValue = /^[\t -~\x80-\xff]*$/;
const lengthValue = /^\d{1,15}$/;
const keepAliveTimeout = /(?:^|[\s,;])timeout=(\d{1,6})/i;
const outerSpace = /^[\t ]+|[\t ]+$/g;

/**
 * Parses a head without the empty line at its end. Anything ambiguous is rejected, because parsers
 * that disagree about the end of a response allow response smuggling. Returns the reason as text.
 */
export function parseResponseHead(text: string): ResponseHead | string {
  const lines = text.split('\r\n');
  const [, minor, status] = statusLine.exec(lines[0]!) ?? [];
  if (status === undefined) return 'the status line is not valid';
  const headers: Record<string, string | string[]> = {};
  for (let i = 1; i < lines.length; i++) {
    const field = parseField(lines[i]!);
    if (field === undefined) return `line ${i + 1} of the head is not a header field`;
    // Parsers disagree about tabs in framing fields.
    if (framingFields.has(field.name) && lines[i]!.includes('\t'))
      return 'a framing field contains a tab';
    add(headers, field.name, field.value);
  }
  const framing = framingOf(headers);
  if (typeof framing === 'string') return framing;
  const options = listOf(headers['connection']);
  // HTTP/1.0 has no chunked coding, so such a response is ambiguous (RFC 9112, 6.1).
  const isOld = minor === '0';
  const isDoubtful = isOld && headers['transfer-encoding'] !== undefined;
  const keepsAlive =
    (isOld ? options.includes('keep-alive') : true) && !options.includes('close') && !isDoubtful;
  const timeout = keepAliveTimeout.exec(String(headers['keep-alive'] ?? ''))?.[1];
  return {
    status: Number(status),
    headers,
    framing,
    keepsAlive,
    keepAliveMs: timeout === undefined ? undefined : Number(timeout) * 1000,
  };
}

/** Parses a field line of a head or of trailers; undefined when it is not valid. */
export function parseField(line: string): { name: string; value: string } | undefined {
  const colon = line.indexOf(':');
  if (colon < 1) return undefined;
  const name = line.slice(0, colon);
  const value = line.slice(colon + 1);
  if (!fieldName.test(name) || !fieldValue.test(value)) return undefined;
  return { name: name.toLowerCase(), value: value.replace(outerSpace, '') };
}

/** True while these first bytes may still become a head. */
export function mayBecomeHead(text: string): boolean {
  const start = 'HTTP/1.';
  const isStart = text.length < start.length ? start.startsWith(text) : text.startsWith(start);
  return isStart && !/[^\r]\n/.test(text);
}

function add(headers: Record<string, string | string[]>, name: string, value: string): void {
  if (!Object.hasOwn(headers, name)) {
    if (name !== '__proto__') headers[name] = value;
    return;
  }
  const before = headers[name]!;
  if (typeof before === 'string') headers[name] = [before, value];
  else before.push(value);
}

function framingOf(headers: Record<string, string | string[]>): Framing | string {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  if (encoding !== undefined) {
    if (length !== undefined) return 'it has both Content-Length and Transfer-Encoding';
    const codings = listOf(encoding);
    const chunksAt = codings.indexOf('chunked');
    if (chunksAt < 0) return { kind: 'close' };
    return chunksAt === codings.length - 1
      ? { kind: 'chunks' }
      : 'chunked is not the last transfer coding';
  }
  if (length === undefined) return { kind: 'close' };
  // A list or a repeated field, even with equal values, points to a broken intermediary.
  if (typeof length !== 'string' || !lengthValue.test(length)) {
    return 'Content-Length is not one number';
  }
  return { kind: 'length', bytes: Number(length) };
}

function listOf(value: string | string[] | undefined): string[] {
  if (value === undefined) return [];
  return String(value)
    .toLowerCase()
    .split(',')
    .map((item) => item.replace(outerSpace, ''));
}
