import type { IncomingMessage, ServerResponse } from 'node:http';
import { Refusal } from '../base/errors.js';
import type { FieldError } from '../base/errors.js';
import { jsonErrorReason } from './json.js';

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
export function invalidBody(code: string, faults: readonly FieldError[]): Refusal {
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

export function malformedBody(code: string, mediaType: string, error: unknown): Refusal {
  const kind = mediaType === 'application/json' ? 'JSON' : mediaType;
  const reason = jsonErrorReason(error);
  return new Refusal(code, `The body is not valid ${kind}: ${reason}.`, { cause: error });
}
