import type { QueueSchema } from '@millrace/contract/queue';
import type { EventQuery } from './events.js';

/*
 * The messages of `queue.v1.Session`, whose meaning is in session.proto. They are written by hand:
 * a message is one JSON text and the payloads beside it, so a general codec would only cost time.
 */

type Claimed = QueueSchema<'ClaimedTask'>;

export interface SessionRequest {
  submit?: { call: number; queue: string; task: object; payload?: number | undefined }[];
  claim?: { call: number; queue: string; request: QueueSchema<'ClaimRequest'> }[];
  drop?: number[];
  settle?: { call: number; queue: string; item: QueueSchema<'SettleItem'> }[];
  extend?: {
    call: number;
    id: string;
    lease_token: string;
    body: QueueSchema<'ExtendTaskRequest'>;
  }[];
  record?: { call: number; id: string; body: QueueSchema<'RecordStepsRequest'> }[];
  /** Opens a stream by a query, or asks for the next batch of the stream of another call. */
  events?: { call: number; query?: EventQuery; of?: number }[];
}

/** As the REST API has it, with the time to wait in place of a header. */
export type SessionError = Partial<QueueSchema<'BatchItemError'>> & {
  status: number;
  retry_after_ms?: number;
};

export interface SessionAnswer {
  call: number;
  body?: unknown;
  error?: SessionError;
}

/** A claimed task with the place of its payload. */
export type SentTask = Omit<Claimed, 'payload'> & { payload: number };

export interface SessionResponse {
  answers?: SessionAnswer[];
  cancelled?: string[];
  lost?: string[];
}

export interface SessionMessage<Content> {
  content: Content;
  payloads: readonly Uint8Array[];
}

export const sessionPath = '/queue.v1.Session/Open';
/** What a connection is upgraded to before HTTP/2 is spoken on it. */
export const sessionUpgrade = 'millrace-session';

const jsonTag = 0x0a;
const payloadTag = 0x12;
const prefixBytes = 5;
const maxHeadBytes = 6;

/** A message with its gRPC prefix. */
export function encodeMessage({ content, payloads }: SessionMessage<object>): Uint8Array {
  const json = Buffer.from(JSON.stringify(content));
  let size = prefixBytes + maxHeadBytes + json.length;
  for (const payload of payloads) size += maxHeadBytes + payload.length;
  const bytes = Buffer.allocUnsafe(size);
  let at = writeField(bytes, prefixBytes, jsonTag, json);
  for (const payload of payloads) at = writeField(bytes, at, payloadTag, payload);
  bytes[0] = 0;
  bytes.writeUInt32BE(at - prefixBytes, 1);
  return bytes.subarray(0, at);
}

function writeField(bytes: Buffer, from: number, tag: number, value: Uint8Array): number {
  let at = from;
  bytes[at++] = tag;
  let left = value.length;
  for (; left > 127; left = Math.floor(left / 128)) bytes[at++] = (left % 128) + 128;
  bytes[at++] = left;
  bytes.set(value, at);
  return at + value.length;
}

/** Throws a TypeError for bytes that are no message; fields that are not known are passed over. */
export function decodeMessage<Content>(bytes: Buffer): SessionMessage<Content> {
  let json = '{}';
  const payloads: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes[at]!;
    let length = 0;
    let scale = 1;
    do {
      if (++at >= bytes.length || scale > 2 ** 28) throw new TypeError('a length is cut off');
      length += (bytes[at]! & 127) * scale;
      scale *= 128;
    } while (bytes[at]! > 127);
    at++;
    if ((tag & 7) !== 2 || at + length > bytes.length) throw new TypeError('a field is cut off');
    const value = bytes.subarray(at, at + length);
    if (tag === jsonTag) json = value.toString('utf8');
    else if (tag === payloadTag) payloads.push(value);
    at += length;
  }
  const content: unknown = JSON.parse(json);
  if (typeof content !== 'object' || content === null) throw new TypeError('it is no object');
  return { content: content as Content, payloads };
}

/** Collects what is said in one turn of the event loop, and sends it as one message. */
export class MessageWriter<Content extends object> {
  #content: Content;
  #payloads: Uint8Array[] = [];
  #isWaiting = false;

  constructor(
    private readonly empty: () => Content,
    private readonly send: (message: Uint8Array, content: Content) => void,
  ) {
    this.#content = empty();
  }

  add(write: (content: Content, payloads: Uint8Array[]) => void): void {
    write(this.#content, this.#payloads);
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    setImmediate(() => this.flush());
  }

  flush(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    const content = this.#content;
    const message = encodeMessage({ content, payloads: this.#payloads });
    this.#content = this.empty();
    this.#payloads = [];
    this.send(message, content);
  }
}
