/**
 * Reads the parts of an OpenAPI 3.1 document that a server needs. The result is plain data, with a
 * JSON pointer to every schema for the validator.
 */
export interface OpenApiDocument {
  openapi: string;
  paths: Readonly<Record<string, PathItem>>;
  /** Requests that the server sends; not served. */
  webhooks?: Readonly<Record<string, PathItem>>;
  components?: { schemas?: Readonly<Record<string, unknown>> };
  security?: readonly SecurityRequirement[];
  'x-error-codes'?: Readonly<Record<string, { status: number; title: string }>>;
}

type SecurityRequirement = Readonly<Record<string, readonly string[]>>;
type JsonObject = Readonly<Record<string, unknown>>;
type PathItem = JsonObject;

export type ParameterPlace = 'path' | 'query' | 'header';

export interface ParameterDescription {
  name: string;
  place: ParameterPlace;
  required: boolean;
  /** The schema, with a top-level `$ref` resolved. */
  schema: JsonObject;
  /** JSON pointer to the schema. */
  pointer: string;
  /** True when a list is written `a,b` instead of repeating the name. */
  commaSeparated: boolean;
  /** The code for an invalid value, from `x-invalid-code` of the parameter. */
  invalidCode: string | undefined;
  /** True when it matches the rest of the path, not decoded: `x-rest-of-path`. */
  takesRest: boolean;
}

export interface ContentDescription {
  mediaType: string;
  /** JSON pointer to the schema; undefined when the content has none. */
  pointer: string | undefined;
}

export interface ResponseDescription {
  status: number;
  contents: readonly ContentDescription[];
}

/** One operation of the document. */
export interface OperationDescription {
  id: string;
  /** Upper case. */
  method: string;
  /** The path template as written, for example `/v1/tasks/{id}:complete`. */
  path: string;
  tags: readonly string[];
  /** True when no token is needed. */
  isPublic: boolean;
  minRole: string | undefined;
  /** The error codes it may respond with. */
  codes: readonly string[];
  invalidCode: string | undefined;
  bodyLimitBytes: number | undefined;
  allowsUnknownQuery: boolean;
  /** True when the handler takes the raw body of any media type. */
  takesRawBody: boolean;
  /** Every `x-` member of the operation. */
  extensions: Readonly<Record<string, unknown>>;
  parameters: readonly ParameterDescription[];
  body: { required: boolean; contents: readonly ContentDescription[] } | undefined;
  responses: readonly ResponseDescription[];
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

// OpenAPI requires that header parameters with these names are ignored.
const headersNotParameters = new Set(['accept', 'content-type', 'authorization']);

/** Every operation of the document, in order. Throws when the document cannot be served. */
export function operationsOf(document: OpenApiDocument): OperationDescription[] {
  const operations: OperationDescription[] = [];
  const seen = new Map<string, string>();
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of methods) {
      if (item[method] === undefined) continue;
      const operation = describeOperation(document, path, method);
      const place = `${operation.method} ${path}`;
      const other = seen.get(operation.id);
      if (other !== undefined) {
        throw new Error(`operationId ${operation.id} is used by ${other} and by ${place}`);
      }
      seen.set(operation.id, place);
      operations.push(operation);
    }
  }
  return operations;
}

function describeOperation(
  document: OpenApiDocument,
  path: string,
  method: string,
): OperationDescription {
  const pointer = `/paths/${escapePointer(path)}/${method}`;
  const operation = objectAt(document, pointer);
  const id = operation['operationId'];
  if (typeof id !== 'string') throw new Error(`${method} ${path} has no operationId`);
  const security = (operation['security'] ?? document.security) as
    readonly SecurityRequirement[] | undefined;
  return {
    id,
    method: method.toUpperCase(),
    path,
    tags: (operation['tags'] as string[] | undefined) ?? [],
    isPublic: (security ?? []).length === 0,
    minRole: operation['x-min-role'] as string | undefined,
    codes: (operation['x-codes'] as string[] | undefined) ?? [],
    invalidCode: operation['x-invalid-code'] as string | undefined,
    bodyLimitBytes: operation['x-body-limit-bytes'] as number | undefined,
    allowsUnknownQuery: operation['x-allow-unknown-query'] === true,
    takesRawBody: operation['x-raw-body'] === true,
    extensions: Object.fromEntries(
      Object.entries(operation).filter(([name]) => name.startsWith('x-')),
    ),
    parameters: describeParameters(document, path, pointer),
    body: describeBody(document, `${pointer}/requestBody`),
    // When asked for: only checks of the contract read them.
    get responses() {
      return describeResponses(document, `${pointer}/responses`);
    },
  };
}

function describeParameters(
  document: OpenApiDocument,
  path: string,
  operationPointer: string,
): ParameterDescription[] {
  // A parameter of the operation overrides one of the path with the same name and place.
  const found = new Map<string, ParameterDescription>();
  for (const pointer of [`/paths/${escapePointer(path)}`, operationPointer]) {
    const list = objectAt(document, pointer)['parameters'];
    if (!Array.isArray(list)) continue;
    for (let index = 0; index < list.length; index++) {
      const parameter = describeParameter(document, `${pointer}/parameters/${index}`);
      if (parameter) found.set(`${parameter.place} ${parameter.name}`, parameter);
    }
  }
  return [...found.values()];
}

function describeParameter(
  document: OpenApiDocument,
  pointer: string,
): ParameterDescription | undefined {
  const at = follow(document, pointer);
  const name = at.value['name'] as string;
  const place = at.value['in'] as string;
  if (place === 'header' && headersNotParameters.has(name.toLowerCase())) return undefined;
  if (place !== 'path' && place !== 'query' && place !== 'header') {
    throw new Error(`Parameter ${name} is in "${place}": only path, query and header are served`);
  }
  if (at.value['schema'] === undefined) throw new Error(`Parameter ${name} has no schema`);
  const schemaPointer = `${at.pointer}/schema`;
  return {
    name,
    place,
    required: place === 'path' || at.value['required'] === true,
    schema: follow(document, schemaPointer).value,
    pointer: schemaPointer,
    commaSeparated: place === 'query' ? at.value['explode'] === false : true,
    invalidCode: at.value['x-invalid-code'] as string | undefined,
    takesRest: place === 'path' && at.value['x-rest-of-path'] === true,
  };
}

function describeBody(document: OpenApiDocument, pointer: string): OperationDescription['body'] {
  if (valueAt(document, pointer) === undefined) return undefined;
  const at = follow(document, pointer);
  return {
    required: at.value['required'] === true,
    contents: describeContents(at.value['content'], at.pointer),
  };
}

function describeResponses(document: OpenApiDocument, pointer: string): ResponseDescription[] {
  const responses: ResponseDescription[] = [];
  for (const status of Object.keys(objectAt(document, pointer))) {
    if (!/^[1-5]\d\d$/.test(status)) continue;
    const at = follow(document, `${pointer}/${status}`);
    const contents = describeContents(at.value['content'], at.pointer);
    responses.push({ status: Number(status), contents });
  }
  return responses;
}

function describeContents(content: unknown, pointer: string): ContentDescription[] {
  if (typeof content !== 'object' || content === null) return [];
  return Object.entries(content as Record<string, JsonObject>).map(([mediaType, entry]) => ({
    mediaType: mediaType.toLowerCase(),
    pointer:
      entry['schema'] === undefined
        ? undefined
        : `${pointer}/content/${escapePointer(mediaType)}/schema`,
  }));
}

/** Resolves `$ref`s at the pointer; returns the value and its own pointer. */
export function follow(
  document: OpenApiDocument,
  pointer: string,
): { value: JsonObject; pointer: string } {
  for (let hops = 0; hops < 32; hops++) {
    const value = objectAt(document, pointer);
    const ref = value['$ref'];
    if (typeof ref !== 'string') return { value, pointer };
    if (!ref.startsWith('#/')) throw new Error(`$ref ${ref} points outside the document`);
    pointer = decodeURIComponent(ref.slice(1));
  }
  throw new Error(`$ref at ${pointer} is circular`);
}

export function valueAt(document: OpenApiDocument, pointer: string): unknown {
  let value: unknown = document;
  for (const part of pointer.split('/').slice(1)) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as JsonObject)[part.replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return value;
}

function objectAt(document: OpenApiDocument, pointer: string): JsonObject {
  const value = valueAt(document, pointer);
  if (typeof value !== 'object' || value === null) {
    throw new Error(`The document has no object at ${pointer}`);
  }
  return value as JsonObject;
}

/** Escapes one part of a JSON pointer. */
export function escapePointer(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1');
}
