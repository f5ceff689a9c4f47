import { type JsonObject, isMerge, refuse } from '../value/documents.js';
import { Refusal } from '@millrace/kit/errors';
import type { CollectionInfo, Core } from './core.js';

/** A schema of zod, valibot, arktype and others: https://standardschema.dev, version 1. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type ObjectOr<T, Otherwise> = T extends object ? T : Otherwise;

/** The type that a schema accepts on writes. */
export type SchemaInput<S extends StandardSchema> = ObjectOr<
  NonNullable<S['~standard']['types']>['input'],
  never
>;
/** The type that a schema stores. */
export type SchemaOutput<S extends StandardSchema> = ObjectOr<
  NonNullable<S['~standard']['types']>['output'],
  never
>;

const maxIssues = 20;

/** The document as the schema returns it, with defaults and transforms. Refuses SCHEMA_VIOLATION. */
export async function validated(
  schema: StandardSchema,
  collection: string,
  data: unknown,
): Promise<object> {
  const result = await schema['~standard'].validate(data);
  if (!result.issues) return result.value as object;
  throw schemaViolation(
    collection,
    result.issues.map(({ path = [], message }) => ({
      path: path.map((part) => String(typeof part === 'object' ? part.key : part)),
      message,
    })),
  );
}

/** A document that its collection's schema does not allow. */
function schemaViolation(
  collection: string,
  issues: readonly { path: readonly string[]; message: string }[],
): Refusal {
  const [first] = issues;
  const at = first && first.path.length > 0 ? ` at "${first.path.join('.')}"` : '';
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
  return new Refusal(
    'SCHEMA_VIOLATION',
    `The document does not match the schema of "${collection}"${at}: ` +
      `${first?.message ?? 'invalid'}${more}.`,
    {
      members: { metadata: { collection, path: first?.path.join('.') ?? '' } },
      errors: issues.slice(0, maxIssues).map(({ path, message }) => ({
        pointer: ['/data', ...path.map(escapePointer)].join('/'),
        message,
      })),
    },
  );
}

function escapePointer(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1');
}

interface Current {
  rev: number;
  data: object;
}

const maxTries = 10;

/**
 * Changes a document that must be valid as a whole: reads it, changes it, and replaces it unless
 * another writer changed it in between. A repeated request id is refused, not applied twice.
 */
export async function changeChecked<Result>(
  change: (before: JsonObject) => JsonObject,
  read: () => Promise<Current>,
  replace: (expectedRev: number, data: object) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    const { rev, data } = await read();
    try {
      return await replace(rev, change(data as JsonObject));
    } catch (error) {
      const isStale = error instanceof Refusal && error.code === 'REV_MISMATCH';
      if (!isStale || attempt >= maxTries) throw error;
    }
  }
}

function mergeNotValidated(): Refusal {
  return refuse(
    'BAD_REQUEST',
    'A schema cannot validate this change without the record; use update, merge or mergeByKey.',
  );
}

interface BulkBody {
  data?: unknown;
  update?: unknown;
  mode?: 'replace' | 'merge' | undefined;
}

/**
 * The operations of a bulk with validated documents, or why one is refused. A merge cannot be
 * validated in a bulk.
 */
export async function validatedOperations<Operation extends object>(
  schema: StandardSchema,
  collection: string,
  operations: readonly Operation[],
): Promise<(Operation | Refusal)[]> {
  if (!Array.isArray(operations)) throw refuse('BAD_REQUEST', 'operations must be a list.');
  const checked: (Operation | Refusal)[] = [];
  for (const operation of operations as readonly Operation[]) {
    try {
      checked.push(await validatedOperation(schema, collection, operation));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      checked.push(error);
    }
  }
  return checked;
}

/** An operation of the wrong form is returned unchanged, for the engine to refuse. */
async function validatedOperation<Operation extends object>(
  schema: StandardSchema,
  collection: string,
  operation: Operation,
): Promise<Operation> {
  const given = Object.entries(operation ?? {}).filter(([, value]) => value !== undefined);
  const [kind, body] = (given[0] ?? []) as [string?, (BulkBody | null)?];
  if (given.length !== 1 || kind === undefined || !body || kind === 'delete') return operation;
  if (isMerge(body.mode) || body.update !== undefined) throw mergeNotValidated();
  const data = await validated(schema, collection, body.data);
  return { [kind]: { ...body, data } } as Operation;
}

const logIntervalMs = 1_000;

/** Refuses a document that the schema of its collection does not allow, or logs and counts it. */
export function enforceSchema(core: Core, collection: CollectionInfo, data: JsonObject): void {
  const { schema, name } = collection;
  const issue = schema?.check(data);
  if (!schema || !issue) return;
  schema.violationCount++;
  core.onSchemaViolation(schema.validate);
  if (schema.validate === 'strict') throw schemaViolation(name, [issue]);
  const now = core.clock.monotonic();
  if (now - schema.loggedAt < logIntervalMs) return;
  schema.loggedAt = now;
  const { violationCount } = schema;
  core.log.warn(
    { collection: name, path: issue.path.join('.'), problem: issue.message, violationCount },
    'schema violation',
  );
}
