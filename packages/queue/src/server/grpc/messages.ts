import {
  fromBinary,
  fromJson,
  toBinary,
  toJson,
  type DescMessage,
  type DescMethod,
  type JsonObject,
  type JsonValue,
} from '@bufbuild/protobuf';
import type { MethodDefinition } from '@grpc/grpc-js';

/** A method whose messages are JSON with the field names of the REST API on our side. */
export function methodDefinition(method: DescMethod): MethodDefinition<JsonObject, JsonObject> {
  const { input, output } = method;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: false,
    responseStream: method.methodKind === 'server_streaming',
    requestSerialize: (message) => encode(input, message),
    requestDeserialize: (bytes) => decode(input, bytes),
    responseSerialize: (message) => encode(output, message),
    responseDeserialize: (bytes) => decode(output, bytes),
  };
}

function encode(schema: DescMessage, message: JsonValue): Buffer {
  return Buffer.from(toBinary(schema, fromJson(schema, message, { ignoreUnknownFields: true })));
}

function decode(schema: DescMessage, bytes: Uint8Array): JsonObject {
  const message = fromBinary(schema, bytes);
  return toJson(schema, message, { useProtoFieldName: true }) as JsonObject;
}
