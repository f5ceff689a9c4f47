import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { grpcCodes } from '@millrace/contract/db';
import type { reflectionV1, reflectionV1alpha } from '@millrace/contract/grpc';
import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import {
  type ServerCall,
  type RequestStreamMethod,
  type RequestQueue,
  errorStatus,
} from '@millrace/wire/grpc';
import { Descriptors } from './descriptors.js';
import { StreamSender } from './sender.js';

const stallMs = 60_000;
// Unauthenticated callers can use reflection, so messages must be small.
const maxMessageBytes = 64 * 1024;

/** Both versions of reflection have the same messages under different names. */
type Version = typeof reflectionV1 | typeof reflectionV1alpha;
type ReflectionRequest =
  reflectionV1.ServerReflectionRequest | reflectionV1alpha.ServerReflectionRequest;
type Answer = NonNullable<reflectionV1.ServerReflectionResponse['messageResponse']>;

/** gRPC server reflection, for grpcurl and similar tools. */
export class Reflection {
  #descriptors: Descriptors | undefined;

  constructor(
    private readonly services: readonly string[],
    private readonly clock: Clock,
  ) {}

  method(version: Version): RequestStreamMethod {
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
    const scope = { signal, throwIfAborted: () => signal.throwIfAborted() };
    const sender = new StreamSender({ call, clock: this.clock, scope, stallMs });
    try {
      for (let bytes = await requests.next(); bytes; bytes = await requests.next()) {
        await sender.send(this.#answer(version, bytes));
      }
      call.end();
    } catch (error) {
      call.end(
        errorStatus(
          'INVALID_ARGUMENT',
          `The message is not a valid ServerReflectionRequest: ${messageOf(error)}.`,
        ),
      );
    }
  }

  #answer(version: Version, bytes: Buffer): Uint8Array {
    const request: ReflectionRequest = fromBinary(version.ServerReflectionRequestSchema, bytes);
    const schema =
      version.ServerReflectionResponseSchema as typeof reflectionV1.ServerReflectionResponseSchema;
    const respond = create(schema, {
      validHost: request.host,
      originalRequest: request as reflectionV1.ServerReflectionRequest,
      messageResponse: this.#find(request),
    });
    return toBinary(schema, respond);
  }

  #find({ messageRequest: query }: ReflectionRequest): Answer {
    // Created on first use: most servers never get a reflection request.
    const descriptors = (this.#descriptors ??= new Descriptors());
    switch (query.case) {
      case 'listServices': {
        const service = this.services.map((name) => ({ name }));
        return respond('listServicesResponse', { service });
      }
      case 'fileByFilename':
        return files(descriptors.byName(query.value), `file ${query.value}`);
      case 'fileContainingSymbol':
        return files(descriptors.bySymbol(query.value), `symbol ${query.value}`);
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = query.value;
        const found = descriptors.byExtension(containingType, extensionNumber);
        return files(found, `extension ${extensionNumber} of ${containingType}`);
      }
      case 'allExtensionNumbersOfType': {
        const numbers = descriptors.extensionNumbers(query.value);
        if (!numbers) return missing(`message ${query.value}`);
        const found = { baseTypeName: query.value, extensionNumber: numbers };
        return respond('allExtensionNumbersResponse', found);
      }
      case undefined:
        return respond('errorResponse', {
          errorCode: grpcCodes.INVALID_ARGUMENT,
          errorMessage: 'The request has no message_request.',
        });
    }
  }
}

// `create` turns the plain object of a oneof into a message.
function respond(name: Answer['case'], value: object): Answer {
  return { case: name, value } as Answer;
}

function files(found: Uint8Array[] | undefined, what: string): Answer {
  if (!found) return missing(what);
  return respond('fileDescriptorResponse', { fileDescriptorProto: found });
}

function missing(what: string): Answer {
  const errorMessage = `There is no ${what}.`;
  return respond('errorResponse', { errorCode: grpcCodes.NOT_FOUND, errorMessage });
}
