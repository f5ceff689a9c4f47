/**
 * The bytes of one full instance of every message, as v1.0.0 wrote them. A number or a type that
 * changes changes the bytes, and clients in the field would read nonsense.
 *
 * `npm run golden -w @millrace/contract` adds instances for new fields; what is there stays.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import {
  type DescField,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { file_millrace_db_v1_db as file } from './db.js';

interface Golden {
  messages: Record<string, Record<string, string>>;
  enums: Record<string, Record<string, number>>;
}

const path = new URL('./golden.json', import.meta.url);
const golden: Golden = JSON.parse(readFileSync(path, 'utf8'));
const sample: Record<string, JsonValue> = {
  'google.protobuf.Struct': { nothing: null, list: [true, 1.5, 'é', {}] },
  'google.protobuf.Value': ['é', -2.5],
  'google.protobuf.Timestamp': '2026-01-02T03:04:05.678901234Z',
  'google.protobuf.Duration': '3.500000001s',
};

/** Values are chosen so that no two types share an encoding of them. */
const scalarValues: Partial<Record<ScalarType, (field: DescField) => JsonValue>> = {
  [ScalarType.STRING]: (field) => `${field.name} é`,
  [ScalarType.BYTES]: (field) => Buffer.from([0xff, field.number, 0]).toString('base64'),
  [ScalarType.BOOL]: () => true,
  [ScalarType.DOUBLE]: (field) => field.number + 0.5,
  [ScalarType.FLOAT]: (field) => field.number + 0.5,
  [ScalarType.UINT32]: (field) => 0xffff_0000 + field.number,
  [ScalarType.UINT64]: (field) => String(2n ** 40n + BigInt(field.number)),
  [ScalarType.FIXED64]: (field) => String(2n ** 63n + BigInt(field.number)),
};

function valueOf(field: DescField, depth: number): JsonValue {
  if (field.message !== undefined) {
    return sample[field.message.typeName] ?? fullInstance(field.message, 0, depth + 1);
  }
  if (field.enum !== undefined) return field.enum.values[1]?.name ?? null;
  const choose = field.scalar === undefined ? undefined : scalarValues[field.scalar];
  if (choose === undefined)
    throw new Error(`${field.parent.name}.${field.name} needs a value here`);
  return choose(field);
}

/** Every field set, lists with two entries; of a oneof, the member with the given place. */
function fullInstance(desc: DescMessage, member = 0, depth = 0): JsonObject {
  const instance: JsonObject = {};
  for (const field of desc.fields) {
    if (field.oneof !== undefined && field.oneof.fields[member] !== field) continue;
    // A filter holds filters; two levels show all there is to show.
    if (field.message === desc && depth > 0) continue;
    const value = valueOf(field, depth);
    instance[field.name] = field.fieldKind === 'list' ? [value, value] : value;
  }
  return instance;
}

function readInstance(desc: DescMessage, hex: string) {
  // A field whose number moved would be unknown, dropped here and missed below.
  const message = fromBinary(desc, Buffer.from(hex, 'hex'), { readUnknownFields: false });
  const json: JsonObject = JSON.parse(toJsonString(desc, message, { useProtoFieldName: true }));
  return { json, hex: Buffer.from(toBinary(desc, message)).toString('hex') };
}

function uncovered(desc: DescMessage): string[] {
  const seen = Object.values(golden.messages[desc.name] ?? {}).flatMap((hex) =>
    Object.keys(readInstance(desc, hex).json),
  );
  return desc.fields.map((field) => field.name).filter((name) => !seen.includes(name));
}

function addMissing() {
  for (const desc of file.messages) {
    const known = (golden.messages[desc.name] ??= {});
    if (Object.keys(known).length > 0 && uncovered(desc).length === 0) continue;
    const members = Math.max(1, ...desc.oneofs.map((oneof) => oneof.fields.length));
    for (let member = 0; member < members; member++) {
      const bytes = toBinary(desc, fromJson(desc, fullInstance(desc, member)));
      known[Object.keys(known).length + 1] = Buffer.from(bytes).toString('hex');
    }
  }
  for (const desc of file.enums) {
    const known = (golden.enums[desc.name] ??= {});
    for (const value of desc.values) known[value.name] ??= value.number;
  }
  writeFileSync(path, `${JSON.stringify(golden, null, 2)}\n`);
}

if (process.env['MILLRACE_GOLDEN'] === 'add') addMissing();

const descOf = (name: string) => file.messages.find((desc) => desc.name === name);

test.each(Object.entries(golden.messages))('%s reads and writes the bytes of old', (name, all) => {
  const desc = descOf(name);
  if (desc === undefined) throw new Error(`${name} is gone`);
  for (const hex of Object.values(all)) expect(readInstance(desc, hex).hex).toBe(hex);
});

test.each(Object.entries(golden.messages))('%s finds every value under its name', (name, all) => {
  const desc = descOf(name);
  if (desc === undefined) throw new Error(`${name} is gone`);
  for (const hex of Object.values(all)) {
    const { json } = readInstance(desc, hex);
    const member = desc.oneofs[0]?.fields.findIndex((field) => field.name in json);
    expect(fullInstance(desc, member)).toMatchObject(json);
  }
});

test('every field of every message has golden bytes', () => {
  const missing = file.messages.map((desc) => [desc.name, uncovered(desc)] as const);
  expect(missing.filter(([, fields]) => fields.length > 0)).toEqual([]);
  expect(Object.keys(golden.messages).toSorted()).toEqual(
    file.messages.map((desc) => desc.name).toSorted(),
  );
});

test('every enum value keeps its number', () => {
  const now = Object.fromEntries(
    file.enums.map((desc) => [
      desc.name,
      Object.fromEntries(desc.values.map((value) => [value.name, value.number])),
    ]),
  );
  expect(now).toEqual(golden.enums);
});
