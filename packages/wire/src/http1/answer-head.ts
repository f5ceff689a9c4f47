/** The head of a response. The same object may serve many responses, so nobody changes it. */
export interface AnswerHead {
  readonly status: number;
  /** Names in lower case; a header that came more than once is a list. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly framing: Framing;
  /** Whether the peer lets the connection be used again. */
  readonly keepsAlive: boolean;
  /** For how long it lets it lie idle, where it says so. */
  readonly keepAliveMs: number | undefined;
}

/** Where the body ends, when the response has one. */
export type Framing =
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunks' }
  | { readonly kind: 'close' };

/** They say where a response ends. */
export const framingFields: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding']);

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t -~\x80-\xff]*)?$/;
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const fieldValue = /^[\t -~\x80-\xff]*$/;
const lengthValue = /^\d{1,15}$/;
const keepAliveTimeout = /(?:^|[\s,;])timeout=(\d{1,6})/i;
const outerSpace = /^[\t ]+|[\t ]+$/g;

/**
 * Reads a head, without the empty line at its end. What it is not sure of it refuses: two readers
 * that disagree about where a response ends are how one is passed off as another. A string says
 * what is wrong.
 */
export function readAnswerHead(text: string): AnswerHead | string {
  const lines = text.split('\r\n');
  const [, minor, status] = statusLine.exec(lines[0]!) ?? [];
  if (status === undefined) return 'its first line is not that of an HTTP/1 response';
  const headers: Record<string, string | string[]> = {};
  for (let i = 1; i < lines.length; i++) {
    const field = readField(lines[i]!);
    if (field === undefined) return `its line ${i + 1} is not a header`;
    // Some take a tab for a space there and some do not.
    if (framingFields.has(field.name) && lines[i]!.includes('\t')) return 'its length has a tab';
    add(headers, field.name, field.value);
  }
  const framing = framingOf(headers);
  if (typeof framing === 'string') return framing;
  const options = listOf(headers['connection']);
  // Before 1.1 there were no chunks, so whoever sends some may mean something else.
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

/** A line of a head or of trailers; undefined when it is none. */
export function readField(line: string): { name: string; value: string } | undefined {
  const colon = line.indexOf(':');
  if (colon < 1) return undefined;
  const name = line.slice(0, colon);
  const value = line.slice(colon + 1);
  if (!fieldName.test(name) || !fieldValue.test(value)) return undefined;
  return { name: name.toLowerCase(), value: value.replace(outerSpace, '') };
}

/** True while these first bytes of a head may still become one. */
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
    if (length !== undefined) return 'it has both a Content-Length and a Transfer-Encoding';
    const codings = listOf(encoding);
    const chunksAt = codings.indexOf('chunked');
    if (chunksAt < 0) return { kind: 'close' };
    return chunksAt === codings.length - 1
      ? { kind: 'chunks' }
      : 'its Transfer-Encoding does not end with the chunks';
  }
  if (length === undefined) return { kind: 'close' };
  // A list, or the header twice, even with one number: then somebody on the way has mixed them up.
  if (typeof length !== 'string' || !lengthValue.test(length)) {
    return 'its Content-Length is not one number';
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
