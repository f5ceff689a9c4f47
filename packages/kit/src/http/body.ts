import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Refusal, messageOf } from '../errors.js';
import type { FieldError } from '../errors.js';

/** Turns the bytes of a body into a value; throws an Error whose message says what is wrong. */
export type BodyParser = (bytes: Buffer) => unknown;

/** True when the request announces a body, be it an empty one. */
export function hasBody(raw: IncomingMessage): boolean {
  const length = raw.headers['content-length'];
  if (length !== undefined) return length !== '0';
  return raw.headers['transfer-encoding'] !== undefined;
}

/**
 * Hands over the bytes of the body once they are there, or undefined when they are more than
 * `limitBytes`. Never calls back when the client leaves before: there is no one to answer.
 */
export function readBody(
  raw: IncomingMessage,
  limitBytes: number,
  done: (bytes: Buffer | undefined) => void,
): void {
  if (Number(raw.headers['content-length'] ?? 0) > limitBytes) {
    done(undefined);
    return;
  }
  const chunks: Buffer[] = [];
  let length = 0;
  const onEnd = () => done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, length));
  const onData = (chunk: Buffer) => {
    length += chunk.length;
    chunks.push(chunk);
    if (length <= limitBytes) return;
    raw.removeListener('data', onData);
    raw.removeListener('end', onEnd);
    done(undefined);
  };
  raw.on('data', onData);
  raw.on('end', onEnd);
}

/**
 * Reads on when an answer comes before the whole body, so that a client which sends first and
 * listens later sees the answer and not a broken connection. Only so far, then it is cut.
 */
export function discardRest(
  raw: IncomingMessage,
  response: ServerResponse,
  limitBytes: number,
): void {
  let left = limitBytes;
  // Node would close the connection right behind the answer: it is kept until the body is in.
  const closesAfter = !response.shouldKeepAlive;
  response.shouldKeepAlive = true;
  raw.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) raw.destroy();
  });
  raw.on('end', () => {
    if (!closesAfter) return;
    if (response.writableFinished) raw.socket.end();
    else response.on('finish', () => raw.socket.end());
  });
}

/** The media type alone, lower case, without parameters; undefined when it is unusable. */
export function mediaTypeOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (header === 'application/json') return header;
  const [type, ...parameters] = header.split(';');
  for (const parameter of parameters) {
    const [name, value = ''] = parameter.trim().toLowerCase().split('=');
    // JSON and YAML are UTF-8 on this API; another charset would be read wrong in silence.
    if (name === 'charset' && !/^"?(?:utf-?8|us-ascii)"?$/.test(value)) return undefined;
  }
  return type!.trim().toLowerCase();
}

/** Parses JSON and calls back at once, refusing a planted `__proto__`: Fastify's own parser. */
export type SecureParse = (
  request: never,
  text: string,
  done: (error: Error | null, value?: unknown) => void,
) => unknown;

// Megabytes of brackets hold up the parser for seconds, and no message of ours is this deep.
const deepestJson = 128;
const [quote, backslash] = [0x22, 0x5c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** True when brackets are nested deeper than any body may be. Text that is no JSON may pass. */
function isTooDeep(bytes: Buffer): boolean {
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === quote) i = endOfString(bytes, i + 1);
    else if (byte === openList || byte === openObject) depth++;
    else if (byte === closeList || byte === closeObject) depth--;
    if (depth > deepestJson) return true;
  }
  return false;
}

/** Where the string that goes on at `start` has its closing quote. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(quote, start); at !== -1; at = bytes.indexOf(quote, at + 1)) {
    let slashes = 0;
    while (at - slashes > start && bytes[at - slashes - 1] === backslash) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return bytes.length;
}

/** JSON text that is UTF-8 and plants no `__proto__`. */
export function jsonParser(secureParse: SecureParse): BodyParser {
  // One pair for all calls, since each is over before the next one starts.
  let failed = false;
  let parsed: unknown;
  const done = (error: Error | null, value?: unknown) => {
    failed = error !== null;
    parsed = value;
  };
  return (bytes) => {
    if (!isUtf8(bytes)) throw new Error('the bytes are not UTF-8');
    if (isTooDeep(bytes)) throw new Error(`it is nested more than ${deepestJson} deep`);
    const text = bytes.toString('utf8');
    secureParse(undefined as never, text, done);
    const value = parsed;
    parsed = undefined;
    if (!failed) return value;
    // The parser keeps its reason to itself: plain JSON.parse finds the same fault again.
    JSON.parse(text.replace(/^\uFEFF/, ''));
    throw new Error('it has a key named "__proto__" or "constructor.prototype"');
  };
}

/** What a body that does not fit its schema is answered with. */
export function invalidBody(code: string, faults: readonly FieldError[]): Refusal {
  const [first] = faults;
  if (!first) return new Refusal(code, 'The body is not valid.', { errors: faults });
  const where = first.pointer === '' ? 'The body' : first.pointer;
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : '';
  return new Refusal(code, `${where} ${sentence(first.message, more)}`, { errors: faults });
}

/** Ends a message as a sentence, unless it ends as a question. */
export function sentence(message: string, more = ''): string {
  return message.endsWith('?') && more === '' ? message : `${message}${more}.`;
}

export function malformedBody(code: string, mediaType: string, error: unknown): Refusal {
  const kind = mediaType === 'application/json' ? 'JSON' : mediaType;
  // JSON.parse repeats a piece of the text and says once more that it is not JSON.
  const reason = messageOf(error).replace(
    /, (?:\.\.\.)?"[^]*" ?(?:\.\.\. )?is not valid JSON$/,
    '',
  );
  return new Refusal(code, `The body is not valid ${kind}: ${reason}.`, { cause: error });
}
