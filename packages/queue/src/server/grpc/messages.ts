import {
  fromBinary,
  fromJson,
  toBinary,
  toJson,
  type DescMessage,
  type DescMethod,
  type JsonObject,
  type JsonValue,
  type Message,
} from '@bufbuild/protobuf';
import type { MethodDefinition } from '@grpc/grpc-js';
import { fail } from '../../operations/refusal.js';

/** A request before it is checked. */
export interface Received {
  schema: DescMessage;
  message: Message;
}

/** A method whose answers are JSON with the field names of the REST API on our side. */
export function methodDefinition(method: DescMethod): MethodDefinition<Received, JsonObject> {
  const { input, output } = method;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: false,
    responseStream: method.methodKind === 'server_streaming',
    requestSerialize: ({ schema, message }) => Buffer.from(toBinary(schema, message)),
    requestDeserialize: (bytes) => ({ schema: input, message: fromBinary(input, bytes) }),
    responseSerialize: (message) => encode(output, message),
    responseDeserialize: (bytes) => jsonOf(output, fromBinary(output, bytes)),
  };
}

function encode(schema: DescMessage, message: JsonValue): Buffer {
  return Buffer.from(toBinary(schema, fromJson(schema, message, { ignoreUnknownFields: true })));
}

/** The request as JSON with the field names of the REST API. */
export function readRequest({ schema, message }: Received): JsonObject {
  try {
    return jsonOf(schema, message);
  } catch {
    const code = schema.name === 'ListTasksRequest' ? 'INVALID_QUERY' : 'INVALID_TASK';
    throw fail(code, 'The request has a timestamp or a number that is out of range.');
  }
}

function jsonOf(schema: DescMessage, message: Message): JsonObject {
  return toJson(schema, message, { useProtoFieldName: true }) as JsonObject;
}
