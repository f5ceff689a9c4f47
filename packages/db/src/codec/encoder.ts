import {
  create,
  ScalarType,
  toBinary,
  type DescField,
  type DescMessage,
  type Message,
} from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import { BackwardWriter } from './backward-writer.js';
import { delimited, noBytes, scalars, type WriteValue } from './scalars.js';

type Fields = Readonly<Record<string, unknown>>;

interface FieldWriter {
  readonly name: string;
  readonly tag: number;
  readonly isRepeated: boolean;
  /** Not written when it has this value or is undefined. */
  readonly empty: unknown;
  readonly write: WriteValue;
}

/** A class whose instances have a faster encoding than field by field. */
interface DirectEncoding {
  readonly type: abstract new (...args: never[]) => object;
  readonly bytes: (message: never) => Uint8Array;
}

let direct: DirectEncoding | undefined;

/** Encodes the instances of a class with `bytes`. */
export function encodeDirectly<T extends object>(
  type: abstract new (...args: never[]) => T,
  bytes: (message: T) => Uint8Array,
): void {
  direct = { type, bytes };
}

const writer = new BackwardWriter();
const encoders = new Map<DescMessage, MessageEncoder>();
// The library represents these as plain values instead of messages.
const shownOtherwise = /^google\.protobuf\.(?:Struct|\w+Value)$/;

/**
 * Encodes messages of one type byte for byte like the library, at a fifth of the cost. Messages
 * with rarely used field kinds are left to the library.
 */
export class MessageEncoder {
  readonly #desc: DescMessage;
  /** In descending order of field number, because the writer works backwards. */
  #fields: readonly FieldWriter[] = [];
  /** Fields and oneofs that only the library can encode. */
  #rare: readonly string[] = [];

  private constructor(desc: DescMessage) {
    this.#desc = desc;
  }

  static of(desc: DescMessage): MessageEncoder {
    let encoder = encoders.get(desc);
    if (!encoder) {
      encoder = new MessageEncoder(desc);
      // Registered before its fields are read, because message types may be recursive.
      encoders.set(desc, encoder);
      encoder.#prepare();
    }
    return encoder;
  }

  encode(message: Message): Buffer {
    try {
      this.#write(message);
    } catch (error) {
      writer.clear();
      throw error;
    }
    return writer.take();
  }

  /** The message, or what it is created from, with its gRPC prefix. */
  frame(message: object): Buffer {
    try {
      this.#write(message);
      writer.head();
    } catch (error) {
      writer.clear();
      throw error;
    }
    return writer.take();
  }

  #prepare(): void {
    const fields: FieldWriter[] = [];
    const rare = new Set<string>(['$unknown']);
    for (const field of this.#desc.fields) {
      const how = field.oneof ? undefined : fieldWriter(field);
      if (how) fields.push(how);
      else rare.add(field.oneof?.localName ?? field.localName);
    }
    this.#fields = fields.sort((a, b) => b.tag - a.tag);
    this.#rare = [...rare];
  }

  #write(given: object): void {
    const message = given as Fields;
    if (direct && message instanceof direct.type) return writer.raw(direct.bytes(message as never));
    for (const name of this.#rare) {
      if (isThere(message[name])) {
        return writer.raw(toBinary(this.#desc, create(this.#desc, message as Message)));
      }
    }
    for (const field of this.#fields) {
      const value = message[field.name];
      if (value === undefined || value === field.empty) continue;
      if (field.empty === noBytes && (value as Uint8Array).length === 0) continue;
      if (field.isRepeated) writeAll(field, value as readonly unknown[]);
      else {
        field.write(writer, value);
        writer.number(field.tag);
      }
    }
  }

  static writePart(desc: DescMessage): WriteValue {
    const encoder = MessageEncoder.of(desc);
    return (_, value) => {
      const before = writer.length;
      encoder.#write(value as Fields);
      writer.number(writer.length - before);
    };
  }
}

function writeAll(field: FieldWriter, values: readonly unknown[]): void {
  for (let i = values.length - 1; i >= 0; i--) {
    field.write(writer, values[i]);
    writer.number(field.tag);
  }
}

/** Whether a field is set that only the library can encode. */
function isThere(value: unknown): boolean {
  if (value === undefined) return false;
  if (Array.isArray(value)) return value.length > 0;
  return !(typeof value === 'object' && value !== null && 'case' in value && !value.case);
}

function fieldWriter(field: DescField): FieldWriter | undefined {
  const isRepeated = field.fieldKind === 'list';
  const kind = isRepeated ? field.listKind : field.fieldKind;
  if (kind === 'message') return partWriter(field, isRepeated);
  const type = kind === 'enum' ? ScalarType.INT32 : field.scalar;
  const scalar = type === undefined || kind === 'map' ? undefined : scalars.get(type);
  // Packed numbers are not supported; no response has them.
  if (!scalar || (isRepeated && scalar.wire !== delimited)) return undefined;
  return {
    name: field.localName,
    tag: tagOf(field, scalar.wire),
    isRepeated,
    empty:
      field.presence === FeatureSet_FieldPresence.IMPLICIT && !isRepeated
        ? scalar.empty
        : undefined,
    write: scalar.write,
  };
}

function partWriter(field: DescField, isRepeated: boolean): FieldWriter | undefined {
  const { message, localName: name } = field;
  if (!message || shownOtherwise.test(message.typeName)) return undefined;
  const write = MessageEncoder.writePart(message);
  return { name, tag: tagOf(field, delimited), isRepeated, empty: undefined, write };
}

function tagOf(field: DescField, wire: number): number {
  return field.number * 8 + wire;
}
