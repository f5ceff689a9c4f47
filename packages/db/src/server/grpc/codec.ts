import { fromBinary, toBinary, type DescMethod, type Message } from '@bufbuild/protobuf';
import type { Value } from '@bufbuild/protobuf/wkt';
import { Database as Api, FilterSchema, type DbMethod, type Filter } from '@millrace/contract/db';
import { messageOf } from '@millrace/kit/errors';
import { refuse } from '@millrace/engine/value/refusal';
import type { Request } from '../service/call.js';
import type { FoundRecords } from '../service/found-records.js';
import { computeOnce } from '../service/compute-once.js';
import { carriesRecords } from '../../codec/carries-records.js';
import { PlainDecoder } from '../../codec/decoder.js';
import { encodeDirectly, MessageEncoder } from '../../codec/encoder.js';
import { ShownRecord } from '../service/records.js';
import { RecordBatch } from './record-batch.js';
import { recordBytes } from './record-writer.js';

encodeDirectly(ShownRecord, recordBytes);

const maxRequestBytes = 4 * 1024 * 1024;
const maxBulkBytes = 16 * 1024 * 1024;

/** Maximum size of a request message or body. */
export function requestLimit(rpc: DbMethod): number {
  return rpc === 'BulkWrite' ? maxBulkBytes : maxRequestBytes;
}

// A document may have 32 levels at two messages each, nested inside a filter.
const recursionLimit = 200;

/** Decodes the requests of one method and encodes its responses. */
export class MethodCodec<Rpc extends DbMethod> {
  readonly #method: DescMethod;
  /** Undefined for methods that protobuf-es decodes and encodes. */
  readonly #decoder: PlainDecoder | undefined;
  readonly #encoder: MessageEncoder | undefined;
  readonly #conditions: readonly string[];

  constructor(readonly rpc: Rpc) {
    this.#method = Api.methods.find(({ name }) => name === rpc)!;
    if (carriesRecords(this.#method.output)) {
      this.#decoder = new PlainDecoder(this.#method.input);
      this.#encoder = MessageEncoder.of(this.#method.output);
    }
    this.#conditions = this.#method.input.fields
      .filter((field) => field.message?.typeName === FilterSchema.typeName)
      .map((field) => field.localName);
  }

  decode(bytes: Buffer): Request<Rpc> {
    const limit = requestLimit(this.rpc);
    if (bytes.length > limit) throw tooLarge(bytes.length, limit);
    const plain = this.#decoder?.decode(bytes);
    if (plain) return plain as Request<Rpc>;
    const request = this.#read(bytes) as unknown as Record<string, unknown>;
    for (const name of this.#conditions) {
      const filter = request[name] as Filter | undefined;
      if (filter) request[name] = plainFilter(filter);
    }
    return request as Request<Rpc>;
  }

  encode(message: Message): Buffer {
    return this.#encoder?.encode(message) ?? Buffer.from(toBinary(this.#method.output, message));
  }

  /**
   * The message with its gRPC prefix. Watches with the same view share message objects, so their
   * bytes are encoded once.
   */
  frame(message: Message): Buffer {
    const { written } = message as Partial<FoundRecords>;
    if (written instanceof RecordBatch) return written.frame(this.encode(message));
    if (!this.#encoder) return framed(this.encode(message));
    if (this.rpc !== 'Watch') return this.#encoder.frame(message);
    return computeOnce(message, frameOf, this.#encoder);
  }

  #read(bytes: Uint8Array): Message {
    try {
      return fromBinary(this.#method.input, bytes, { readUnknownFields: false, recursionLimit });
    } catch (error) {
      const text = `The message is not a valid ${this.#method.input.name}: ${messageOf(error)}.`;
      throw refuse('BAD_REQUEST', text, undefined, { cause: error });
    }
  }
}

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function frameOf(message: Message, encoder: MessageEncoder): Buffer {
  return encoder.frame(message);
}

export function tooLarge(bytes: number | undefined, limit: number): Error {
  const size = bytes === undefined ? 'more than' : `${bytes} bytes, more than`;
  return refuse(
    'REQUEST_TOO_LARGE',
    `The request has ${size} the limit of ${limit} bytes. Send a smaller request.`,
    { limit_bytes: String(limit) },
  );
}

/**
 * The filter in its JSON form, like filter-decoder.ts produces. Unset fields are left out so that
 * the engine can detect them.
 */
export function plainFilter({ field, op, value, and, or, not }: Filter): object {
  return {
    ...(field !== '' && { field }),
    ...(op !== '' && { op }),
    ...(value && { value: plainValue(value) }),
    ...(and.length > 0 && { and: and.map(plainFilter) }),
    ...(or.length > 0 && { or: or.map(plainFilter) }),
    ...(not && { not: plainFilter(not) }),
  };
}

function plainValue({ kind }: Value): unknown {
  switch (kind.case) {
    case 'listValue':
      return kind.value.values.map(plainValue);
    case 'structValue':
      return Object.fromEntries(
        Object.entries(kind.value.fields).map(([name, value]) => [name, plainValue(value)]),
      );
    case 'numberValue':
    case 'stringValue':
    case 'boolValue':
      return kind.value;
    case 'nullValue':
    case undefined:
      return null;
  }
}
