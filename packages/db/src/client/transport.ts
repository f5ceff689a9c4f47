import {
  fromBinary,
  ScalarType,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { refuse } from '@millrace/engine/value/documents';
import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import { CallError, Channel } from '@millrace/wire/grpc-client';
import { carriesRecords, MessageEncoder } from '../codec/encoder.js';
import { PlainDecoder } from '../codec/decoder.js';
import type { ServerAddress } from './address.js';
import { toRefusal } from './failures.js';

/** TLS options for `grpcs://`, as PEM. */
export interface TlsOptions {
  /** CA certificates to trust instead of the system's. */
  ca?: string | Uint8Array | undefined;
  /** Client certificate and key, if the server requires one. */
  certificate?: string | Uint8Array | undefined;
  key?: string | Uint8Array | undefined;
  /** Expected name in the server's certificate, if it differs from the URL. */
  serverName?: string | undefined;
}

export interface Attempt {
  /** Milliseconds since the epoch. */
  deadline?: number | undefined;
  signal?: AbortSignal | undefined;
}

// A watch sends a commit as one message, however large.
const maxReceivedBytes = 64 * 1024 * 1024;

export interface TransportOptions {
  key?: string | undefined;
  tls?: TlsOptions;
  clock: Clock;
}

/** Calls to one server. Does not retry; failures are `CallRefusal`. */
export class Transport {
  readonly url: string;
  readonly #channel: Channel;

  constructor(address: ServerAddress, { key, tls, clock }: TransportOptions) {
    this.url = address.url;
    this.#channel = new Channel({
      place: address.place,
      tls: address.isSecure ? (tls ?? {}) : undefined,
      clock,
      headers: key === undefined ? {} : { 'x-api-key': key },
      maxMessageBytes: maxReceivedBytes,
    });
  }

  async unary<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodUnary<Input, Output>,
    request: MessageInitShape<Input>,
    attempt: Attempt,
  ): Promise<MessageShape<Output>> {
    attempt.signal?.throwIfAborted();
    const message = frameOf(method.input, request);
    try {
      const bytes = await this.#channel.unary(pathOf(method), message, attempt);
      return decoderOf(method.output)(bytes);
    } catch (error) {
      throw error instanceof CallError ? toRefusal(error, this.url) : error;
    }
  }

  /** The messages of a stream, with backpressure. Leaving the loop cancels the call. */
  async *stream<Input extends DescMessage, Output extends DescMessage>(
    method: DescMethodServerStreaming<Input, Output>,
    request: MessageInitShape<Input>,
    attempt: Attempt,
  ): AsyncGenerator<MessageShape<Output>, void, void> {
    attempt.signal?.throwIfAborted();
    const message = frameOf(method.input, request);
    const messages = this.#channel.stream(pathOf(method), message, attempt);
    try {
      const decode = decoderOf(method.output);
      for await (const bytes of messages) yield decode(bytes);
    } catch (error) {
      throw error instanceof CallError ? toRefusal(error, this.url) : error;
    }
  }

  /** Refuses new calls and closes the connections when the open calls have ended. */
  close(): void {
    this.#channel.close();
  }
}

/** Programs without types may pass any value; what a message cannot carry is refused. */
function frameOf<Desc extends DescMessage>(desc: Desc, request: MessageInitShape<Desc>): Buffer {
  try {
    return MessageEncoder.of(desc).frame(request);
  } catch (error) {
    const problem = wrongValue(desc, request) ?? messageOf(error);
    throw refuse('BAD_REQUEST', `The request cannot be sent: ${problem}.`, {}, { cause: error });
  }
}

/** The first member that must be text and is not. */
function wrongValue(desc: DescMessage, message: unknown, place = ''): string | undefined {
  for (const { localName, fieldKind, message: part, scalar } of desc.fields) {
    const value = (message as Record<string, unknown>)[localName];
    const isText = scalar === ScalarType.STRING && fieldKind !== 'map';
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each === undefined) continue;
      if (isText && typeof each !== 'string') return `${place}${localName} must be a text`;
      const isPart = part && typeof each === 'object' && each !== null;
      const found = isPart ? wrongValue(part, each, `${place}${localName}.`) : undefined;
      if (found) return found;
    }
  }
  return undefined;
}

const paths = new WeakMap<object, string>();

function pathOf(method: { name: string; parent: { typeName: string } }): string {
  let path = paths.get(method);
  if (path === undefined) paths.set(method, (path = `/${method.parent.typeName}/${method.name}`));
  return path;
}

type Decode<Desc extends DescMessage> = (bytes: Buffer) => MessageShape<Desc>;

const decoders = new WeakMap<DescMessage, Decode<DescMessage>>();

/** Messages with records are decoded several times faster than by the library. */
function decoderOf<Desc extends DescMessage>(desc: Desc): Decode<Desc> {
  let decode = decoders.get(desc);
  if (!decode) {
    const options = { parts: true, storedRecords: true };
    const plain = carriesRecords(desc) ? new PlainDecoder(desc, options) : undefined;
    decode = (bytes) =>
      (plain?.decode(bytes) as MessageShape<DescMessage> | undefined) ?? fromBinary(desc, bytes);
    decoders.set(desc, decode);
  }
  return decode;
}
