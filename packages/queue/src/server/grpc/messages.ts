import {
  fromBinary,
  fromJson,
  toBinary,
  toJson,
  type DescMethod,
  type JsonObject,
  type JsonValue,
  type Message,
} from '@bufbuild/protobuf';
import { messageOf } from '@millrace/kit/errors';
import { fail } from '../../operations/refusal.js';

/** Messages of one method as JSON with the field names of the REST API. */
export class MethodCodec {
  constructor(private readonly method: DescMethod) {}

  get path(): string {
    return `/${this.method.parent.typeName}/${this.method.name}`;
  }

  read(bytes: Uint8Array): JsonObject {
    const { input } = this.method;
    let message: Message;
    try {
      message = fromBinary(input, bytes, { readUnknownFields: false });
    } catch (error) {
      throw this.#invalid(`The message is not a valid ${input.name}: ${messageOf(error)}.`);
    }
    try {
      return toJson(input, message, { useProtoFieldName: true }) as JsonObject;
    } catch {
      throw this.#invalid('The request has a timestamp or a number that is out of range.');
    }
  }

  write(message: object): Uint8Array {
    const { output } = this.method;
    return toBinary(output, fromJson(output, message as JsonValue, { ignoreUnknownFields: true }));
  }

  #invalid(detail: string): Error {
    return fail(this.method.name === 'ListTasks' ? 'INVALID_QUERY' : 'INVALID_TASK', detail);
  }
}

export function textIn(message: JsonObject, name: string): string {
  const value = message[name];
  return typeof value === 'string' ? value : '';
}

/** The fields of a message that belong to the body of the REST call. */
export function bodyOf(message: JsonObject, ...others: string[]): JsonObject {
  return Object.fromEntries(Object.entries(message).filter(([name]) => !others.includes(name)));
}
