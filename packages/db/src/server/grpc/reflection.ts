import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { grpcCodes } from '@millrace/contract/db';
import type { reflectionV1, reflectionV1alpha } from '@millrace/contract/grpc';
import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import {
  type ServerCall,
  type StreamedMethod,
  type RequestQueue,
  failed,
} from '@millrace/wire/grpc';
import { Descriptors } from './descriptors.js';
import { StreamSender } from './sender.js';

const stallMs = 60_000;
// Anyone may call it, so it takes small messages only.
const maxMessageBytes = 64 * 1024;

/** The two versions of reflection have the same messages under other names. */
type Version = typeof reflectionV1 | typeof reflectionV1alpha;
type Asked = reflectionV1.ServerReflectionRequest | reflectionV1alpha.ServerReflectionRequest;
type Answer = NonNullable<reflectionV1.ServerReflectionResponse['messageResponse']>;

/** Server reflection: how grpcurl and others learn what the server can do. */
export class Reflection {
  #descriptors: Descriptors | undefined;

  constructor(
    private readonly services: readonly string[],
    private readonly clock: Clock,
  ) {}

  method(version: Version): StreamedMethod {
    return {
      takes: 'many',
      maxMessageBytes,
      start: (call, requests) => void this.#serve(version, call, requests),
    };
  }

  async #serve(version: Version, call: ServerCall, requests: RequestQueue): Promise<void> {
    const gone = new AbortController();
    const { signal } = gone;
    call.work = gone;
    const sender = new StreamSender({ call, clock: this.clock, signal, stallMs });
    try {
      for (let bytes = await requests.next(); bytes; bytes = await requests.next()) {
        await sender.send(this.#answer(version, bytes));
      }
      call.end();
    } catch (error) {
      call.end(failed('INVALID_ARGUMENT', `Not a reflection request: ${messageOf(error)}`));
    }
  }

  #answer(version: Version, bytes: Buffer): Uint8Array {
    const request: Asked = fromBinary(version.ServerReflectionRequestSchema, bytes);
    const schema =
      version.ServerReflectionResponseSchema as typeof reflectionV1.ServerReflectionResponseSchema;
    const answer = create(schema, {
      validHost: request.host,
      originalRequest: request as reflectionV1.ServerReflectionRequest,
      messageResponse: this.#find(request),
    });
    return toBinary(schema, answer);
  }

  #find({ messageRequest: asked }: Asked): Answer {
    // Made when someone asks: most servers are never asked.
    const descriptors = (this.#descriptors ??= new Descriptors());
    switch (asked.case) {
      case 'listServices': {
        const service = this.services.map((name) => ({ name }));
        return answer('listServicesResponse', { service });
      }
      case 'fileByFilename':
        return files(descriptors.byName(asked.value), `file ${asked.value}`);
      case 'fileContainingSymbol':
        return files(descriptors.bySymbol(asked.value), `symbol ${asked.value}`);
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = asked.value;
        const found = descriptors.byExtension(containingType, extensionNumber);
        return files(found, `extension ${extensionNumber} of ${containingType}`);
      }
      case 'allExtensionNumbersOfType': {
        const numbers = descriptors.extensionNumbers(asked.value);
        if (!numbers) return missing(`message ${asked.value}`);
        const found = { baseTypeName: asked.value, extensionNumber: numbers };
        return answer('allExtensionNumbersResponse', found);
      }
      case undefined:
        return answer('errorResponse', {
          errorCode: grpcCodes.INVALID_ARGUMENT,
          errorMessage: 'The request asks for nothing.',
        });
    }
  }
}

// What stands in a oneof is a plain object that `create` makes a message of.
function answer(name: Answer['case'], value: object): Answer {
  return { case: name, value } as Answer;
}

function files(found: Uint8Array[] | undefined, what: string): Answer {
  if (!found) return missing(what);
  return answer('fileDescriptorResponse', { fileDescriptorProto: found });
}

function missing(what: string): Answer {
  const errorMessage = `There is no ${what} here.`;
  return answer('errorResponse', { errorCode: grpcCodes.NOT_FOUND, errorMessage });
}
