import { BodyReader } from './body-reader.js';
import type { BodyParser } from './body.js';
import type { Endpoint } from './dispatch.js';
import type { OperationDescription } from './document.js';
import { untypedHandler } from './handlers.js';
import type { UntypedHandler } from './handlers.js';
import type { UntypedOptions } from './options.js';
import { parameterReader } from './parameters.js';
import type { ParameterReader } from './parameters.js';
import type { HttpErrorCodes } from './problem.js';
import type { DocumentSchemas } from './schemas.js';

/** An operation with its handler and readers, created at startup. */
export interface BoundOperation extends Endpoint {
  operation: OperationDescription;
  handler: UntypedHandler;
  path: ParameterReader | undefined;
  query: ParameterReader | undefined;
  headers: ParameterReader | undefined;
  body: BodyReader | undefined;
}

export interface BindingParts {
  schemas: DocumentSchemas;
  httpErrorCodes: HttpErrorCodes;
  parsers: Readonly<Record<string, BodyParser>>;
  options: UntypedOptions;
}

const defaultBodyLimitBytes = 1_048_576;

export function boundOperation(
  operation: OperationDescription,
  { schemas, httpErrorCodes, parsers, options }: BindingParts,
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
  if (options.precompiledOperations?.includes(operation.id)) {
    for (const each of [path, query, headers]) each?.prepare();
  }
  const limitBytes = operation.bodyLimitBytes ?? options.bodyLimitBytes ?? defaultBodyLimitBytes;
  const body = operation.body
    ? new BodyReader(operation, { schemas, httpErrorCodes, fillDefaults, parsers, limitBytes })
    : undefined;
  return {
    operation,
    isPublic: operation.isPublic,
    bodyLimitBytes: body && limitBytes,
    handler,
    path,
    query,
    headers,
    body,
  };
}
