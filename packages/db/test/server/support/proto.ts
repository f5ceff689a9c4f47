import { fileURLToPath } from 'node:url';
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';

/** A message as the gRPC libraries represent it. */
export type Message = Record<string, unknown>;

const home = fileURLToPath(new URL('../../../../contract/proto', import.meta.url));
const files = [
  'millrace/db/v1/db.proto',
  'grpc/health/v1/health.proto',
  'grpc/reflection/v1/reflection.proto',
  'grpc/reflection/v1alpha/reflection.proto',
  'google/rpc/error_details.proto',
  'google/rpc/status.proto',
];

/** The contract, loaded from the proto files. */
export const definition = loadSync(files, {
  includeDirs: [home],
  keepCase: true,
  longs: Number,
  enums: String,
  defaults: true,
  oneofs: true,
});

/** Reads the bytes of a message. */
export function decode(name: string, bytes: Buffer): Message {
  const type = definition[name] as MessageTypeDefinition<Message, Message>;
  return type.deserialize(bytes);
}

/** JSON as a google.protobuf.Value. */
export function toValue(json: unknown): Message {
  if (json === null) return { nullValue: 'NULL_VALUE' };
  if (typeof json === 'number') return { numberValue: json };
  if (typeof json === 'string') return { stringValue: json };
  if (typeof json === 'boolean') return { boolValue: json };
  if (Array.isArray(json)) return { listValue: { values: json.map(toValue) } };
  return { structValue: toStruct(json as object) };
}

/** A JSON object as a google.protobuf.Struct. */
export function toStruct(json: object): Message {
  const fields = Object.entries(json).map(([name, value]) => [name, toValue(value)]);
  return { fields: Object.fromEntries(fields) as Message };
}

export function fromStruct(struct: unknown): Message {
  const fields = Object.entries((struct as { fields?: Message } | null)?.fields ?? {});
  return Object.fromEntries(fields.map(([name, value]) => [name, fromValue(value)])) as Message;
}

function fromValue(value: unknown): unknown {
  const message = value as Message;
  const kind = message['kind'] as string;
  switch (kind) {
    case 'nullValue':
      return null;
    case 'listValue':
      return ((message[kind] as { values: unknown[] }).values ?? []).map(fromValue);
    case 'structValue':
      return fromStruct(message[kind]);
    default:
      return message[kind];
  }
}

/** A filter of plain JSON as the message, whose operand is a google.protobuf.Value. */
export function toFilter(filter: Message): Message {
  const list = (name: string) => (filter[name] as Message[] | undefined)?.map(toFilter);
  return {
    ...filter,
    ...('value' in filter && { value: toValue(filter['value']) }),
    ...(filter['and'] !== undefined && { and: list('and') }),
    ...(filter['or'] !== undefined && { or: list('or') }),
    ...(filter['not'] !== undefined && { not: toFilter(filter['not'] as Message) }),
  };
}
