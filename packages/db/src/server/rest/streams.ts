import { Database as Api } from '@millrace/contract/db';
import type { DescField } from '@bufbuild/protobuf';
import type {
  StreamingRpc,
  FoundRecords,
  RecordWriter,
  PushSource,
  Abortable,
} from '../service/call.js';
import { computeOnce } from '../service/records.js';
import {
  jsonWriter,
  writerWithout,
  JsonRecords,
  JsonRecordWriter,
  type RecordFrame,
} from './json-out.js';
import type { Readable } from 'node:stream';
import type { Exchange } from '@millrace/kit/http';

type Messages = AsyncIterable<unknown> & Partial<PushSource<unknown>>;

/** How the messages of a streaming method are sent as one HTTP response. */
export interface StreamForm {
  readonly contentType: string;
  /** Sends the messages. */
  deliver(messages: Messages, writer: ResponseWriter): Promise<void>;
  /** Encodes the records of Find; undefined: they come as messages. */
  readonly recordWriter?: () => RecordWriter;
  /** Last chunk of a response that fails after it began; undefined: the connection is closed. */
  failure: ((status: object) => string) | undefined;
}

// A response up to this size is sent whole, with Content-Length.
const maxBufferedBytes = 1024 * 1024;

function outputOf(rpc: StreamingRpc) {
  return Api.methods.find(({ name }) => name === rpc)!.output;
}

/** Writers for the list items of a message, with text around each, and for its other fields. */
function partsOf(rpc: StreamingRpc, frameOf: (list: DescField) => RecordFrame) {
  const output = outputOf(rpc);
  const list = output.fields.find((field) => field.fieldKind === 'list')!;
  const frame = frameOf(list);
  const [before, between, after] = [frame.before, frame.between, frame.after].map(String);
  const writeItem = jsonWriter(list.message!);
  const writeItems = (message: unknown): Buffer => {
    const { written } = message as Partial<FoundRecords>;
    if (written instanceof JsonRecords) return written.bytes;
    const items = (message as Readonly<Record<string, readonly unknown[]>>)[list.localName]!;
    return Buffer.from(items.map((item) => before! + writeItem(item) + after!).join(between));
  };
  const recordWriter = () => new JsonRecordWriter(frame);
  return { list, recordWriter, writeItems, writeRest: writerWithout(output, list) };
}

/** All messages as one JSON object: lists are joined, other fields come from the last message. */
export function pageForm(rpc: StreamingRpc): StreamForm {
  const frameOf = () => ({ before: noBytes, between: comma, after: noBytes });
  const { list, recordWriter, writeItems, writeRest } = partsOf(rpc, frameOf);
  return {
    contentType: 'application/json',
    failure: undefined,
    recordWriter,
    async deliver(messages, writer) {
      let buffered: Buffer[] = [Buffer.from(`{${JSON.stringify(list.name)}:[`)];
      let bufferedBytes = 0;
      let isFirst = true;
      let rest = '{}';
      for await (const message of messages) {
        rest = writeRest(message);
        const items = writeItems(message);
        if (items.length === 0) continue;
        if (!isFirst) buffered.push(comma);
        isFirst = false;
        buffered.push(items);
        bufferedBytes += items.length;
        if (bufferedBytes <= maxBufferedBytes) continue;
        if (!writer.hasBegun) writer.begin('application/json');
        await writer.write(Buffer.concat(buffered));
        buffered = [];
        bufferedBytes = 0;
      }
      const tail = rest.slice(1);
      buffered.push(Buffer.from(`]${tail === '}' ? '' : ','}${tail}`));
      writer.end('application/json', Buffer.concat(buffered));
    },
  };
}

/** One line per list item, then one line with the other fields of the last message. */
export function itemLinesForm(rpc: StreamingRpc): StreamForm {
  const { recordWriter, writeItems, writeRest } = partsOf(rpc, (list) => ({
    before: Buffer.from(`{${JSON.stringify(singular(list))}:`),
    between: noBytes,
    after: Buffer.from('}\n'),
  }));
  return {
    contentType: 'application/x-ndjson',
    failure: errorLine,
    recordWriter,
    async deliver(messages, writer) {
      let rest = '{}';
      for await (const message of messages) {
        rest = writeRest(message);
        const lines = writeItems(message);
        if (!writer.hasBegun) writer.begin('application/x-ndjson');
        if (lines.length > 0) await writer.write(lines);
      }
      writer.end('application/x-ndjson', `${rest}\n`);
    },
  };
}

const comma = Buffer.from(',');
const noBytes = Buffer.alloc(0);

/** `records` becomes `record`. */
function singular(list: DescField): string {
  return list.name.replace(/s$/, '');
}

/** One line per message. */
export function messageLinesForm(rpc: StreamingRpc): StreamForm {
  const write = sharedWriter(rpc);
  const deliverPieces = pieceByPiece((message) => `${write(message)}\n`);
  return {
    contentType: 'application/x-ndjson',
    failure: errorLine,
    async deliver(messages, writer) {
      writer.begin('application/x-ndjson');
      await deliverPieces(messages, writer);
      writer.end('application/x-ndjson');
    },
  };
}

/**
 * Sends each message as text. Messages that arrive while the stream waits are pushed, all of one
 * turn in one write. Streams with the same view share arrays, so the text is built once.
 */
function pieceByPiece(pieceOf: (message: unknown) => string) {
  const rowOf = (messages: readonly unknown[]) => Buffer.from(messages.map(pieceOf).join(''));
  return async (messages: Messages, writer: ResponseWriter): Promise<void> => {
    messages.pushTo?.({
      hasRoom: () => writer.hasRoom(),
      take: (some) => writer.push(computeOnce(some, rowOf)),
    });
    for await (const message of messages) await writer.write(pieceOf(message));
  };
}

/** Watches with the same view share messages, so the text is built once. */
function sharedWriter(rpc: StreamingRpc): (message: unknown) => string {
  const write = jsonWriter(outputOf(rpc));
  return (message) => computeOnce(message as object, write, asText);
}

// NDJSON and server-sent events share the same text.
const asText = 'text';

export function errorLine(status: object): string {
  return `${JSON.stringify({ error: status })}\n`;
}

/** Each message as a server-sent event, whose id is the resume token. */
export function eventsForm(rpc: StreamingRpc): StreamForm {
  const write = sharedWriter(rpc);
  const deliverPieces = pieceByPiece((message) => {
    const { resumeToken: token } = message as { readonly resumeToken?: string };
    // An empty id would reset the browser's last event id.
    const id = token ? `id: ${token}\n` : '';
    return `${id}data: ${write(message)}\n\n`;
  });
  return {
    contentType: 'text/event-stream',
    failure: (status) => `data: ${JSON.stringify({ error: status })}\n\n`,
    async deliver(messages, writer) {
      writer.begin('text/event-stream');
      // Some clients report an open stream only after the first bytes.
      await writer.write(': open\n\n');
      await deliverPieces(messages, writer);
      writer.end('text/event-stream');
    },
  };
}

/** Longer lines are reported as such and skipped. */
export const maxLineBytes = 4 * 1024 * 1024;
const maxWaitingBytes = 2 * 1024 * 1024;
const maxWaitingLines = 2_000;
const newline = 0x0a;

/** The lines of a stream. Reads ahead while the taker works, up to a limit. */
export class LineQueue {
  readonly #source: Readable;
  #lines: (Buffer | 'too long')[] = [];
  #waitingBytes = 0;
  /** The beginning of a line whose end has not arrived. */
  #open: Buffer[] = [];
  #openBytes = 0;
  #isSkipping = false;
  #isEnded = false;
  #failure: { reason: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(source: Readable, signal: AbortSignal) {
    this.#source = source;
    const fail = (reason: unknown) => {
      this.#failure ??= { reason };
      this.#wake?.();
    };
    source.on('data', (chunk: Buffer) => this.#add(chunk));
    source.on('end', () => this.#end());
    source.on('error', fail);
    source.on('close', () => {
      if (!this.#isEnded) fail(new Error('The client disconnected'));
    });
    signal.addEventListener('abort', () => fail(signal.reason), { once: true });
  }

  /** The next lines without blank ones, at most `count`; undefined at the end. */
  async take(count: number): Promise<(Buffer | 'too long')[] | undefined> {
    while (this.#lines.length === 0) {
      if (this.#failure) throw this.#failure.reason;
      if (this.#isEnded) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const taken = this.#lines.splice(0, count);
    for (const line of taken) this.#waitingBytes -= line.length;
    if (!this.#isFull) this.#source.resume();
    return taken;
  }

  get #isFull(): boolean {
    return this.#lines.length >= maxWaitingLines || this.#waitingBytes >= maxWaitingBytes;
  }

  #add(chunk: Buffer): void {
    let start = 0;
    for (let end; (end = chunk.indexOf(newline, start)) !== -1; start = end + 1) {
      this.#extend(chunk.subarray(start, end));
      this.#closeLine();
    }
    this.#extend(chunk.subarray(start));
    if (this.#isFull) this.#source.pause();
    if (this.#lines.length > 0) this.#wake?.();
  }

  #extend(piece: Buffer): void {
    if (this.#isSkipping || piece.length === 0) return;
    this.#openBytes += piece.length;
    this.#open.push(piece);
    if (this.#openBytes <= maxLineBytes) return;
    this.#isSkipping = true;
    this.#open = [];
  }

  #closeLine(): void {
    const line = this.#isSkipping ? ('too long' as const) : Buffer.concat(this.#open);
    this.#open = [];
    this.#openBytes = 0;
    this.#isSkipping = false;
    if (line !== 'too long' && isBlank(line)) return;
    this.#lines.push(line);
    this.#waitingBytes += line.length;
  }

  #end(): void {
    if (this.#openBytes > 0) this.#closeLine();
    this.#isEnded = true;
    this.#wake?.();
  }
}

function isBlank(line: Buffer): boolean {
  for (const byte of line) if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false;
  return true;
}

/** Writes a chunked response with backpressure. */
export class ResponseWriter {
  constructor(
    private readonly exchange: Exchange,
    private readonly scope: Abortable,
  ) {}

  get hasBegun(): boolean {
    return this.exchange.response.headersSent;
  }

  begin(contentType: string): void {
    const noBuffering = ['x-accel-buffering', 'no'];
    this.exchange.begin(200, [
      'content-type',
      contentType,
      'cache-control',
      'no-store',
      ...noBuffering,
    ]);
  }

  async write(piece: string | Uint8Array): Promise<void> {
    this.scope.throwIfAborted();
    const drained = this.exchange.write(piece);
    if (!drained) return;
    await untilAborted(drained, this.scope.signal);
  }

  /** Whether a push would be sent without waiting. */
  hasRoom(): boolean {
    const { response } = this.exchange;
    return !response.writableNeedDrain && !response.destroyed;
  }

  /** Like `write`, for callers that check `hasRoom` first. */
  push(piece: Uint8Array): void {
    this.exchange.response.write(piece);
  }

  /** Writes the last chunk. A response that has not begun is sent whole, with Content-Length. */
  end(contentType: string, piece: string | Buffer = ''): void {
    const { exchange } = this;
    if (this.hasBegun) exchange.response.end(piece);
    else exchange.send(200, ['content-type', contentType, 'cache-control', 'no-store'], piece);
  }
}

async function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort);
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    work.catch(() => undefined);
  }
}
