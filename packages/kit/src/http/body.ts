import { isUtf8 } from 'node:buffer';
import { parse as parseSecurely } from 'secure-json-parse';
import { messageOf, Refusal, type FieldError } from '../base/errors.js';
import type { IncomingMessage, ServerResponse, IncomingHttpHeaders } from 'node:http';
import type { OperationDescription } from './document.js';
import type { HttpErrorCodes } from './problem.js';
import type { Check, DocumentSchemas } from './schemas.js';

// Megabytes of brackets block the parser for seconds, and no valid body is this deep.
export const maxJsonDepth = 128;
const [quote, backslash] = [0x22, 0x5c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Parses JSON that is UTF-8, not nested too deep and without `__proto__`. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Error('the bytes are not UTF-8');
  if (isTooDeepJson(bytes)) throw new Error(`it is nested more than ${maxJsonDepth} levels deep`);
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  try {
    return parseSecurely(text);
  } catch {
    // JSON.parse throws the syntax error again, with its position.
    JSON.parse(text);
    throw new Error('it has a key named "__proto__" or "constructor.prototype"');
  }
}

/** Returns parsed data; throws when a text has a lone surrogate, which only escapes can produce. */
export function wellFormed<T>(value: T): T {
  const isMalformed = (each: unknown): boolean => {
    if (typeof each === 'string') return !each.isWellFormed();
    if (typeof each !== 'object' || each === null) return false;
    return Object.keys(each).some(isMalformed) || Object.values(each).some(isMalformed);
  };
  if (isMalformed(value)) throw new Error('a text has a lone surrogate, which is not Unicode');
  return value;
}

/** The reason of a JSON error, without the excerpt of the text. */
export function jsonErrorReason(error: unknown): string {
  return messageOf(error).replace(/, (?:\.\.\.)?"[^]*" ?(?:\.\.\. )?is not valid JSON$/, '');
}

/** True when brackets are nested deeper than `maxJsonDepth`. Does not validate the JSON. */
export function isTooDeepJson(bytes: Buffer): boolean {
  // Too short to be nested that deep.
  if (bytes.length <= maxJsonDepth) return false;
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === quote) i = endOfString(bytes, i + 1);
    else if (byte === openList || byte === openObject) depth++;
    else if (byte === closeList || byte === closeObject) depth--;
    if (depth > maxJsonDepth) return true;
  }
  return false;
}

/** The offset of the closing quote of a string. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(quote, start); at !== -1; at = bytes.indexOf(quote, at + 1)) {
    let slashes = 0;
    while (at - slashes > start && bytes[at - slashes - 1] === backslash) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return bytes.length;
}

/** Parses the bytes of a body; throws an Error with the reason. */
export type BodyParser = (bytes: Buffer) => unknown;

/** The bytes of a body, or why it was not read. */
export type BodyOutcome = Buffer | 'too large' | 'no memory';

/** True when the request has a body, which may be empty with chunked encoding. */
export function hasBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length'];
  if (length !== undefined) return length !== '0';
  return request.headers['transfer-encoding'] !== undefined;
}

/** Memory overhead of a chunk, counted so that many small chunks cannot bypass the limit. */
const chunkOverheadBytes = 256;

/**
 * Calls `done` with the complete body, or with the reason why it was not read. Every chunk is
 * counted with `hold`. `done` is not called when the client disconnects first.
 */
export function readBody(
  request: IncomingMessage,
  limitBytes: number,
  { hold }: { hold: (bytes: number) => boolean },
  done: (body: BodyOutcome) => void,
): void {
  if (Number(request.headers['content-length'] ?? 0) > limitBytes) return done('too large');
  const chunks: Buffer[] = [];
  let length = 0;
  const onEnd = () => done(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length));
  const onData = (chunk: Buffer) => {
    length += chunk.length;
    const isHeld = length <= limitBytes && hold(chunk.length + chunkOverheadBytes);
    if (isHeld) return void chunks.push(chunk);
    request.removeListener('data', onData);
    request.removeListener('end', onEnd);
    chunks.length = 0;
    done(length > limitBytes ? 'too large' : 'no memory');
  };
  request.on('data', onData);
  request.on('end', onEnd);
}

/** Body bytes discarded after an early response before the connection is closed. */
const maxDiscardedBytes = 67_108_864;

/**
 * Discards the rest of the body after an early response, up to a limit, so that a client that sends
 * its whole body before it reads sees the response instead of a connection reset.
 */
export function discardRest(request: IncomingMessage, response: ServerResponse): void {
  let left = maxDiscardedBytes;
  // Node would close the connection after the response; it stays open until the body has arrived.
  const closesAfter = !response.shouldKeepAlive;
  response.shouldKeepAlive = true;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  request.on('end', () => {
    if (!closesAfter) return;
    if (response.writableFinished) request.socket.end();
    else response.on('finish', () => request.socket.end());
  });
}

/** The media type alone, lower case, without parameters; undefined when it is unusable. */
export function mediaTypeOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (header === 'application/json') return header;
  const [type, ...parameters] = header.split(';');
  for (const parameter of parameters) {
    const [name, value = ''] = parameter.trim().toLowerCase().split('=');
    // JSON and YAML are UTF-8 in this API; another charset would be decoded wrongly.
    if (name === 'charset' && !/^"?(?:utf-?8|us-ascii)"?$/.test(value)) return undefined;
  }
  return type!.trim().toLowerCase();
}

/** The refusal of a body that does not match its schema. */
function invalidBody(code: string, faults: readonly FieldError[]): Refusal {
  const [first] = faults;
  if (!first) return new Refusal(code, 'The body is not valid.', { errors: faults });
  const where = first.pointer === '' ? 'The body' : first.pointer;
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : '';
  return new Refusal(code, `${where} ${sentence(first.message, more)}`, { errors: faults });
}

/** Adds a full stop, unless the message is a question. */
export function sentence(message: string, more = ''): string {
  return message.endsWith('?') && more === '' ? message : `${message}${more}.`;
}

function malformedBody(code: string, mediaType: string, error: unknown): Refusal {
  const kind = mediaType === 'application/json' ? 'JSON' : mediaType;
  const reason = jsonErrorReason(error);
  return new Refusal(code, `The body is not valid ${kind}: ${reason}.`, { cause: error });
}

interface BodyReaderOptions {
  schemas: DocumentSchemas;
  httpErrorCodes: HttpErrorCodes;
  limitBytes: number;
  fillDefaults: boolean;
  parsers: Readonly<Record<string, BodyParser>>;
}

export interface ReadBody {
  value: unknown;
  /** The schema check; undefined when the content has no schema. */
  check: Check | undefined;
}

interface Form {
  parse: BodyParser;
  check: Check | undefined;
}

/** Checks the body of one operation: size, media type, syntax and schema, in that order. */
export class BodyReader {
  readonly #operation: OperationDescription;
  readonly #httpErrorCodes: HttpErrorCodes;
  readonly #limitBytes: number;
  readonly #invalidCode: string;
  readonly #required: boolean;
  readonly #forms = new Map<string, Form>();
  readonly #anyForm: Form | undefined;

  constructor(operation: OperationDescription, options: BodyReaderOptions) {
    const { body, invalidCode } = operation;
    if (!body) throw new Error(`${operation.id} has no body`);
    if (invalidCode === undefined) {
      throw new Error(`${operation.id} takes a body and needs an x-invalid-code for a bad one`);
    }
    this.#operation = operation;
    this.#httpErrorCodes = options.httpErrorCodes;
    this.#limitBytes = options.limitBytes;
    this.#invalidCode = invalidCode;
    this.#required = body.required;
    const { fillDefaults, schemas, parsers } = options;
    if (operation.takesRawBody) this.#anyForm = { parse: (bytes) => bytes, check: undefined };
    for (const { mediaType, pointer } of operation.takesRawBody ? [] : body.contents) {
      const parse = parsers[mediaType];
      if (!parse) throw new Error(`${operation.id} takes ${mediaType}, which has no body parser`);
      const check = pointer === undefined ? undefined : schemas.at(pointer, { fillDefaults });
      this.#forms.set(mediaType, { parse, check });
    }
  }

  parse(bytes: Buffer | 'too large', headers: IncomingHttpHeaders): ReadBody {
    if (bytes === 'too large') throw this.#tooLarge();
    if (bytes.length === 0) {
      if (!this.#required) return { value: undefined, check: undefined };
      throw new Refusal(this.#invalidCode, `A body is required: send ${this.#mediaTypes()}.`);
    }
    if (this.#anyForm) return { value: bytes, check: undefined };
    const mediaType = mediaTypeOf(headers['content-type']);
    const form = mediaType === undefined ? undefined : this.#forms.get(mediaType);
    if (!form) throw this.#unsupported(headers['content-type']);
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      throw new Refusal(
        this.#httpErrorCodes.unsupportedMediaType,
        `Content-Encoding ${encoding} is not supported: send the body without encoding.`,
        { headers: { 'accept-encoding': 'identity' } },
      );
    }
    try {
      return { value: form.parse(bytes), check: form.check };
    } catch (error) {
      throw malformedBody(this.#invalidCode, mediaType!, error);
    }
  }

  /** Throws a refusal when the value does not match its schema. */
  verify({ value, check }: ReadBody): void {
    if (check && !check.accepts(value)) throw invalidBody(this.#invalidCode, check.faults(value));
  }

  #mediaTypes(): string {
    return [...this.#forms.keys()].join(' or ');
  }

  #tooLarge(): Refusal {
    return new Refusal(
      this.#httpErrorCodes.payloadTooLarge,
      `The body is larger than the limit of ${this.#limitBytes} bytes of ${this.#operation.id}.`,
    );
  }

  #unsupported(given: string | undefined): Refusal {
    const found = given === undefined ? 'no Content-Type' : `Content-Type ${given}`;
    return new Refusal(
      this.#httpErrorCodes.unsupportedMediaType,
      `The request has ${found}: send ${this.#mediaTypes()}.`,
    );
  }
}
