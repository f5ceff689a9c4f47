import type { IncomingMessage, ServerResponse } from 'node:http';
import { Refusal } from '../errors.js';
import type { FieldError } from '../errors.js';
import { jsonErrorReason } from './json.js';

/** Turns the bytes of a body into a value; throws an Error whose message says what is wrong. */
export type BodyParser = (bytes: Buffer) => unknown;

/** The bytes of a body, or why there are none. */
export type BodyOutcome = Buffer | 'too large' | 'no memory';

/** True when the request announces a body, be it an empty one. */
export function hasBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length'];
  if (length !== undefined) return length !== '0';
  return request.headers['transfer-encoding'] !== undefined;
}

/** What a chunk costs beside its bytes, so that many small ones cannot hold uncounted memory. */
const chunkOverheadBytes = 256;

/**
 * Calls back with the body once it is complete, or with the reason why it is not read. Every chunk
 * is counted by `hold` as it arrives. Never calls back when the client leaves before.
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

/** What a client that was answered early may still send before its connection is cut. */
const maxDiscardedBytes = 67_108_864;

/**
 * Reads on when a response comes before the whole body, so that a client which sends first and
 * reads later sees the response and not a broken connection. Only so far, then it is cut.
 */
export function discardRest(request: IncomingMessage, response: ServerResponse): void {
  let left = maxDiscardedBytes;
  // Node would close the connection right behind the response: it is kept until the body is in.
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
    // JSON and YAML are UTF-8 on this API; another charset would be read wrong in silence.
    if (name === 'charset' && !/^"?(?:utf-?8|us-ascii)"?$/.test(value)) return undefined;
  }
  return type!.trim().toLowerCase();
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
  const reason = jsonErrorReason(error);
  return new Refusal(code, `The body is not valid ${kind}: ${reason}.`, { cause: error });
}
