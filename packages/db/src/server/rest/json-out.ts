import { ScalarType, type DescField, type DescMessage } from '@bufbuild/protobuf';
import type { Duration, Timestamp } from '@bufbuild/protobuf/wkt';
import { dbGrpcOnlyFields } from '@millrace/contract/db';
import { ShownRecord } from '../service/records.js';
import { durationText } from './durations.js';
import { recordText } from './record-json.js';
import { timeText } from './times.js';

/** The JSON text of a value. */
type Write = (value: unknown) => string;
type Fields = Readonly<Record<string, unknown>>;

/**
 * Writes a message as JSON: snake_case, 64-bit integers as numbers, times as RFC 3339. Scalars and
 * lists are always present; other fields only when set.
 */
export function jsonWriter(desc: DescMessage): Write {
  let write = writers.get(desc.typeName);
  if (!write) {
    // Registered before its fields are read, because message types may be recursive.
    let made: Write | undefined;
    write = (message) => (made ??= writerWithout(desc))(message);
    writers.set(desc.typeName, write);
  }
  return write;
}

const writers = new Map<string, Write>();

/** Like `jsonWriter`, without one field. */
export function writerWithout(desc: DescMessage, left?: DescField): Write {
  const grpcOnly = new Set(dbGrpcOnlyFields[desc.name]);
  const fields = desc.fields
    .filter((field) => field !== left && !grpcOnly.has(field.name))
    .map((field) => ({
      label: `${JSON.stringify(field.name)}:`,
      local: field.localName,
      write: writerOf(field),
    }));
  return (message) => {
    if (message instanceof ShownRecord) return recordText(message);
    let text = '{';
    for (const { label, local, write } of fields) {
      const given = (message as Fields)[local];
      if (given === undefined) continue;
      if (text.length > 1) text += ',';
      text += label + write(given);
    }
    return `${text}}`;
  };
}

function writerOf(field: DescField): Write {
  const one = oneWriter(field);
  if (field.fieldKind !== 'list') return one;
  return (list) => {
    const items = list as readonly unknown[];
    let text = '[';
    for (let i = 0; i < items.length; i++) text += i === 0 ? one(items[i]) : `,${one(items[i])}`;
    return `${text}]`;
  };
}

function oneWriter(field: DescField): Write {
  const { message, enum: enumeration, scalar } = field;
  if (enumeration) {
    return (number) => JSON.stringify(enumeration.value[number as number]?.name ?? number);
  }
  if (message) return messageWriter(message);
  if (scalar === ScalarType.UINT64) return (value) => String(Number(value));
  return JSON.stringify;
}

function messageWriter(desc: DescMessage): Write {
  switch (desc.typeName) {
    case 'google.protobuf.Struct':
      return JSON.stringify;
    case 'google.protobuf.Timestamp':
      return (value) => {
        const { seconds, nanos } = value as Timestamp;
        return `"${timeText(Number(seconds) * 1000 + nanos / 1e6)}"`;
      };
    case 'google.protobuf.Duration':
      return (value) => `"${durationText(value as Duration)}"`;
    default:
      return jsonWriter(desc);
  }
}
