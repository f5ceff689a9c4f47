import { BodyReader } from './body-reader.js';
import type { BodyParser } from './body.js';
import type { OperationDescription } from './document.js';
import { untypedHandler } from './handlers.js';
import type { UntypedHandler } from './handlers.js';
import type { UntypedOptions } from './options.js';
import { parameterReader } from './parameters.js';
import type { ParameterReader } from './parameters.js';
import type { GlueCodes } from './problem.js';
import type { DocumentSchemas } from './schemas.js';

/** An operation with everything that was made ready for it at start-up. */
export interface BoundOperation {
  operation: OperationDescription;
  handler: UntypedHandler;
  path: ParameterReader | undefined;
  query: ParameterReader | undefined;
  headers: ParameterReader | undefined;
  body: BodyReader | undefined;
}

/** All operations of one path. */
export interface PathEntry {
  methods: Map<string, BoundOperation>;
  /** The value of `Allow`. */
  allow: string;
  /** True when none of them needs a token. */
  isPublic: boolean;
}

export interface BindingParts {
  schemas: DocumentSchemas;
  glueCodes: GlueCodes;
  parsers: Readonly<Record<string, BodyParser>>;
  options: UntypedOptions;
}

const defaultBodyLimitBytes = 1_048_576;

export function boundOperation(
  operation: OperationDescription,
  { schemas, glueCodes, parsers, options }: BindingParts,
): BoundOperation {
  const handler = untypedHandler(options.handlers[operation.id]);
  const fillDefaults = handler.fillDefaults ?? options.fillDefaults ?? false;
  const { invalidCode } = operation;
  const invalidQueryCode = options.invalidQueryCode ?? invalidCode;
  const invalidPathCode = options.invalidPathCode ?? invalidCode ?? invalidQueryCode;
  const invalidHeaderCode = invalidCode ?? invalidQueryCode;
  const reader = (place: 'path' | 'query' | 'header', code: string | undefined) =>
    parameterReader(operation, schemas, { place, fillDefaults, invalidCode: code });
  const [path, query, headers] = [
    reader('path', invalidPathCode),
    reader('query', invalidQueryCode),
    reader('header', invalidHeaderCode),
  ];
  if (options.readyOperations?.includes(operation.id)) {
    for (const each of [path, query, headers]) each?.prepare();
  }
  return {
    operation,
    handler,
    path,
    query,
    headers,
    body: operation.body
      ? new BodyReader(operation, {
          schemas,
          glueCodes,
          fillDefaults,
          parsers,
          limitBytes: operation.bodyLimitBytes ?? options.bodyLimitBytes ?? defaultBodyLimitBytes,
        })
      : undefined,
  };
}

/** The operation that a method asks for on this path; HEAD is answered as GET without its body. */
export function operationFor(entry: PathEntry, method: string): BoundOperation | undefined {
  return entry.methods.get(method) ?? (method === 'HEAD' ? entry.methods.get('GET') : undefined);
}

export function allowOf(entry: PathEntry): string {
  const methods = new Set(entry.methods.keys());
  if (methods.has('GET')) methods.add('HEAD');
  return [...methods].sort().join(', ');
}
