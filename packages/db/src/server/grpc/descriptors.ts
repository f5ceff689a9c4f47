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

/** File descriptors of all services, indexed for reflection requests. */
export class Descriptors {
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
