import { ScalarType, type DescField, type DescMessage } from '@bufbuild/protobuf';
import type { Duration, Timestamp } from '@bufbuild/protobuf/wkt';
import { dbGrpcOnlyFields } from '@millrace/contract/db';
import { durationText } from './durations.js';
import { timeText } from './times.js';

type Show = (value: unknown) => unknown;
type Fields = Readonly<Record<string, unknown>>;

/**
 * Makes plain JSON of a message: snake_case, 64-bit numbers as numbers, times as RFC 3339.
 * Numbers, texts, flags and lists are always there; the rest only when it is set.
 */
export function jsonShower(desc: DescMessage): (message: unknown) => Record<string, unknown> {
  const known = showers.get(desc.typeName);
  if (known) return known;
  const show = (message: unknown): Record<string, unknown> => {
    const json: Record<string, unknown> = {};
    for (const { name, local, value } of fields) {
      const given = (message as Fields)[local];
      if (given !== undefined) json[name] = value(given);
    }
    return json;
  };
  showers.set(desc.typeName, show);
  const grpcOnly = new Set(dbGrpcOnlyFields[desc.name]);
  const fields = desc.fields
    .filter((field) => !grpcOnly.has(field.name))
    .map((field) => ({ name: field.name, local: field.localName, value: showerOf(field) }));
  return show;
}

const showers = new Map<string, (message: unknown) => Record<string, unknown>>();

function showerOf(field: DescField): Show {
  const one = oneShower(field);
  return field.fieldKind === 'list' ? (list) => (list as unknown[]).map(one) : one;
}

function oneShower(field: DescField): Show {
  const { message, enum: enumeration, scalar } = field;
  if (enumeration) return (number) => enumeration.value[number as number]?.name ?? number;
  if (message) return messageShower(message);
  if (scalar === ScalarType.UINT64) return Number;
  return (value) => value;
}

function messageShower(desc: DescMessage): Show {
  switch (desc.typeName) {
    case 'google.protobuf.Struct':
      return (value) => value;
    case 'google.protobuf.Timestamp':
      return (value) => {
        const { seconds, nanos } = value as Timestamp;
        return timeText(Number(seconds) * 1000 + nanos / 1e6);
      };
    case 'google.protobuf.Duration':
      return (value) => durationText(value as Duration);
    default:
      return jsonShower(desc);
  }
}
