import {
  create,
  createFileRegistry,
  fromBinary,
  toBinary,
  type DescFile,
  type FileRegistry,
} from '@bufbuild/protobuf';
import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  type FileDescriptorProto,
} from '@bufbuild/protobuf/wkt';
import { databaseDescriptorSet } from '@millrace/contract/documents';
import {
  file_grpc_health_v1_health,
  reflectionV1,
  reflectionV1alpha,
} from '@millrace/contract/grpc';
import { grpcCodes } from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import {
  type ServerCall,
  type RequestStreamMethod,
  type RequestQueue,
  errorStatus,
} from '@millrace/wire/grpc';
import { StreamSender } from './handlers.js';

/** File descriptors of all services, indexed for reflection requests. */
class Descriptors {
  readonly #registry: FileRegistry;
  readonly #bytes = new Map<string, Uint8Array>();

  constructor() {
    const files = allFiles();
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: files }));
    for (const file of files) {
      this.#bytes.set(file.name, toBinary(FileDescriptorProtoSchema, file));
    }
    this.#registry = registry;
  }

  /** The file and its imports; undefined when there is no such file. */
  byName(name: string): Uint8Array[] | undefined {
    const file = this.#registry.getFile(name);
    return file && this.#withImports(file);
  }

  /** The file that defines a message, enum, service, extension, or a member of one. */
  bySymbol(symbol: string): Uint8Array[] | undefined {
    const desc = this.#registry.get(symbol);
    if (desc) return this.#withImports(desc.file);
    const dot = symbol.lastIndexOf('.');
    const parent = dot === -1 ? undefined : this.#registry.get(symbol.slice(0, dot));
    return parent && hasMember(parent, symbol.slice(dot + 1))
      ? this.#withImports(parent.file)
      : undefined;
  }

  byExtension(type: string, number: number): Uint8Array[] | undefined {
    const message = this.#registry.getMessage(type);
    const extension = message && this.#registry.getExtensionFor(message, number);
    return extension && this.#withImports(extension.file);
  }

  /** Undefined when there is no such message. */
  extensionNumbers(type: string): number[] | undefined {
    if (!this.#registry.getMessage(type)) return undefined;
    const numbers: number[] = [];
    for (const desc of this.#registry) {
      if (desc.kind === 'extension' && desc.extendee.typeName === type) numbers.push(desc.number);
    }
    return numbers.sort((a, b) => a - b);
  }

  #withImports(file: DescFile): Uint8Array[] {
    const files = new Set<string>();
    const add = (each: DescFile) => {
      const name = each.proto.name;
      if (files.has(name)) return;
      files.add(name);
      each.dependencies.forEach(add);
    };
    add(file);
    return [...files].map((name) => this.#bytes.get(name)!);
  }
}

type Desc = NonNullable<ReturnType<FileRegistry['get']>>;

function hasMember(desc: Desc, name: string): boolean {
  switch (desc.kind) {
    case 'message':
      return [...desc.fields, ...desc.oneofs].some((member) => member.name === name);
    case 'enum':
      return desc.values.some((value) => value.name === name);
    case 'service':
      return desc.methods.some((method) => method.name === name);
    case 'extension':
      return false;
  }
}

function allFiles(): FileDescriptorProto[] {
  const { file } = fromBinary(FileDescriptorSetSchema, databaseDescriptorSet());
  const known = new Set(file.map(({ name }) => name));
  const beside = [
    file_grpc_health_v1_health,
    reflectionV1.file_grpc_reflection_v1_reflection,
    reflectionV1alpha.file_grpc_reflection_v1alpha_reflection,
  ];
  return [...file, ...beside.map(({ proto }) => proto).filter(({ name }) => !known.has(name))];
}

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
