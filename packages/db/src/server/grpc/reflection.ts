import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { status as grpcCode, type handleBidiStreamingCall } from '@grpc/grpc-js';
import type { reflectionV1, reflectionV1alpha } from '@millrace/contract/grpc';
import { messageOf } from '@millrace/kit/errors';
import { Descriptors } from './descriptors.js';

/** The two versions of reflection have the same messages under other names. */
type Version = typeof reflectionV1 | typeof reflectionV1alpha;
type Asked = reflectionV1.ServerReflectionRequest | reflectionV1alpha.ServerReflectionRequest;
type Answer = NonNullable<reflectionV1.ServerReflectionResponse['messageResponse']>;

/** Server reflection: how grpcurl and others learn what the server can do. */
export class Reflection {
  #descriptors: Descriptors | undefined;

  constructor(private readonly services: readonly string[]) {}

  handler(version: Version): handleBidiStreamingCall<Buffer, Buffer> {
    return (call) => {
      call.on('data', (bytes: Buffer) => {
        try {
          call.write(this.#answer(version, bytes));
        } catch (error) {
          const details = `Not a reflection request: ${messageOf(error)}`;
          call.emit('error', { code: grpcCode.INVALID_ARGUMENT, details });
        }
      });
      call.on('end', () => call.end());
    };
  }

  #answer(version: Version, bytes: Buffer): Buffer {
    const request: Asked = fromBinary(version.ServerReflectionRequestSchema, bytes);
    const schema =
      version.ServerReflectionResponseSchema as typeof reflectionV1.ServerReflectionResponseSchema;
    const answer = create(schema, {
      validHost: request.host,
      originalRequest: request as reflectionV1.ServerReflectionRequest,
      messageResponse: this.#find(request),
    });
    return Buffer.from(toBinary(schema, answer));
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
          errorCode: grpcCode.INVALID_ARGUMENT,
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
  return answer('errorResponse', { errorCode: grpcCode.NOT_FOUND, errorMessage });
}
