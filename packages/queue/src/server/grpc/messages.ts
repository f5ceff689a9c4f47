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
import { fail } from '../../operations/base/refusal.js';

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
    const payloads = holders(message).map((holder) => takePayload(holder, emptyBytes));
    try {
      const json = toJson(input, message, { useProtoFieldName: true }) as JsonObject;
      holders(json).forEach((holder, i) => {
        const bytes = payloads[i] as Uint8Array | undefined;
        if (bytes && bytes.length > 0) holder.payload = base64(bytes);
      });
      return json;
    } catch {
      throw this.#invalid('The request has a timestamp or a number that is out of range.');
    }
  }

  write(message: object): Uint8Array {
    const { output } = this.method;
    const { payload, ...rest } = message as Holder;
    const answer = fromJson(output, rest as JsonValue, { ignoreUnknownFields: true });
    if (typeof payload === 'string') (answer as Holder).payload = Buffer.from(payload, 'base64');
    return toBinary(output, answer);
  }

  #invalid(detail: string): Error {
    return fail(this.method.name === 'ListTasks' ? 'INVALID_QUERY' : 'INVALID_TASK', detail);
  }
}

/** Payloads are converted apart: the library takes 20 times as long for large ones. */
interface Holder {
  payload?: unknown;
  tasks?: Holder[];
}

const emptyBytes = new Uint8Array(0);

/** The message itself, or the tasks of a batch. */
function holders(message: object): Holder[] {
  const { tasks } = message as Holder;
  return tasks ?? [message];
}

function takePayload(holder: Holder, left: unknown): unknown {
  const { payload } = holder;
  if (payload !== undefined) holder.payload = left;
  return payload;
}

function base64({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('base64');
}

export function textIn(message: JsonObject, name: string): string {
  const value = message[name];
  return typeof value === 'string' ? value : '';
}

/** The fields of a message that belong to the body of the REST call. */
export function bodyOf(message: JsonObject, ...others: string[]): JsonObject {
  return Object.fromEntries(Object.entries(message).filter(([name]) => !others.includes(name)));
}
