import { createRequire } from 'node:module';
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import type * as AjvLibrary from 'ajv/dist/2020.js';
import type addFormats from 'ajv-formats';
import { messageOf } from '@millrace/kit/errors';
import type { JsonObject } from '../value/documents.js';
import { compileRegex, fromRegExpSyntax } from '../value/regex.js';
import { refuse } from '../value/refusal.js';

export type ValidateMode = 'strict' | 'warn';

/** Why a document does not match a schema. */
export interface SchemaIssue {
  /** Empty: the document as a whole. */
  readonly path: readonly string[];
  readonly message: string;
}

/** The first thing that is wrong with a document; undefined: it matches. */
export type CheckDocument = (data: JsonObject) => SchemaIssue | undefined;

/** The schema of a collection as it is declared, with its compiled check. */
export interface CollectionSchema {
  /** As JSON. */
  readonly text: string;
  readonly validate: ValidateMode;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
  readonly check: CheckDocument;
  /** Documents that did not match since it was loaded. */
  violationCount: number;
  /** When a violation was last logged. */
  loggedAt: number;
}

export const maxSchemaBytes = 256 * 1024;
const dialect = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
const require = createRequire(import.meta.url);

/** Compiles a JSON Schema 2020-12. Refuses BAD_SCHEMA. */
export function compileSchema(schema: JsonObject): CheckDocument {
  const { $schema } = schema;
  if ($schema !== undefined && !(typeof $schema === 'string' && dialect.test($schema))) {
    throw badSchema(
      `$schema is ${JSON.stringify($schema)}; only JSON Schema 2020-12 is supported ` +
        '(https://json-schema.org/draft/2020-12/schema)',
    );
  }
  checkNotAsync(schema);
  const ajv = newAjv();
  if (!ajv.validateSchema(schema)) {
    throw badSchema(issueText(issueOf(ajv.errors ?? [])));
  }
  let validate: ValidateFunction;
  try {
    validate = ajv.compile(schema);
  } catch (error) {
    throw badSchema(compileProblem(error));
  }
  const check: CheckDocument = (data) => run(validate, data);
  const issue = check({});
  if (issue?.message === endless) throw badSchema(endless);
  return check;
}

const endless = 'the schema refers to itself without end';

function run(validate: ValidateFunction, data: JsonObject): SchemaIssue | undefined {
  try {
    return validate(data) ? undefined : issueOf(validate.errors ?? []);
  } catch (error) {
    // A stack overflow: documents are at most 32 levels deep, so only the schema can recurse.
    if (error instanceof RangeError) return { path: [], message: endless };
    throw error;
  }
}

function newAjv(): Ajv2020 {
  // Loaded on first use: most databases have no schema.
  const library = require('ajv/dist/2020.js') as typeof AjvLibrary;
  const formats = require('ajv-formats') as typeof addFormats;
  const ajv = new library.Ajv2020({
    strict: false,
    logger: false,
    ownProperties: true,
    code: { regExp: linearRegExp },
  });
  formats.default(ajv, { mode: 'fast' });
  // The one of ajv compares all pairs: an array of a 2 MiB document would take hours.
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must NOT have duplicate items' },
    compile: (isUnique: boolean) => (items: readonly unknown[]) =>
      !isUnique || new Set(items.map(canonicalText)).size === items.length,
  });
  return ajv;
}

/** RE2 takes linear time whatever the pattern. */
const linearRegExp = Object.assign(
  (pattern: string) => {
    const fail = (problem: string) => new PatternError(`the pattern "${pattern}" ${problem}`);
    const test = compileRegex(fromRegExpSyntax(pattern), fail);
    // Ajv tells patterns apart by their text.
    return { test, toString: () => pattern };
  },
  // Only for code that is generated ahead of time.
  { code: '' },
) as unknown as NonNullable<NonNullable<AjvLibrary.Options['code']>['regExp']>;

class PatternError extends Error {}

function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** Ajv would return a promise, which counts as a match. */
function checkNotAsync(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '$async')) throw badSchema('$async is not part of JSON Schema');
  for (const part of Object.values(value)) checkNotAsync(part);
}

function compileProblem(error: unknown): string {
  const { missingRef } = error as { missingRef?: string };
  if (missingRef !== undefined) {
    return (
      `it refers to ${JSON.stringify(missingRef)}, which is not in it. Other documents are not ` +
      'loaded; put the definition under $defs'
    );
  }
  return messageOf(error);
}

/** Applicators add their own error after those of their parts; `if` says less than its parts. */
function issueOf(errors: readonly Partial<ErrorObject>[]): SchemaIssue {
  const last = errors.findLast(({ keyword }) => keyword !== 'if') ?? errors.at(-1) ?? {};
  // For an unknown `type` in a schema the list of types says more than "anyOf".
  const values = errors.find(({ keyword }) => keyword === 'enum');
  const isOfValues = last.keyword === 'anyOf' && values?.instancePath === last.instancePath;
  const error = isOfValues ? values! : last;
  const { instancePath = '', message = 'is invalid', params = {} } = error;
  const path = instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const names = params as Record<string, unknown>;
  const own =
    names['missingProperty'] ?? names['additionalProperty'] ?? names['unevaluatedProperty'];
  if (typeof own === 'string') path.push(own);
  return { path, message: `${message}${detailOf(error.keyword, names)}` };
}

const maxDetailLength = 100;

function detailOf(keyword: string | undefined, params: Record<string, unknown>): string {
  const allowed = params['allowedValues'] ?? params['allowedValue'];
  if (keyword !== 'enum' && keyword !== 'const') return '';
  const text = JSON.stringify(allowed);
  return text.length > maxDetailLength ? '' : `: ${text}`;
}

function issueText({ path, message }: SchemaIssue): string {
  return path.length > 0 ? `at "${path.join('.')}": ${message}` : message;
}

function badSchema(problem: string) {
  const end = /[.)]$/.test(problem) ? '' : '.';
  return refuse('BAD_SCHEMA', `The schema cannot be used: ${problem}${end}`);
}
