import type * as AjvLibrary from 'ajv/dist/2020.js';
import type * as AjvCompile from 'ajv/dist/compile/index.js';
import type addFormats from 'ajv-formats';
import type { Ajv2020, KeywordCxt, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import { createRequire } from 'node:module';
import { messageOf } from '@millrace/kit/errors';
import { type JsonObject, refuse } from '../value/documents.js';
import { compileRegex, fromRegExpSyntax } from '../value/regex.js';

const maxEvaluationPaths = 1_000_000;

const listsOfSchemas = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const mapsOfSchemas = ['properties', 'patternProperties', 'dependentSchemas'];
const schemas = [
  'not',
  'if',
  'then',
  'else',
  'items',
  'contains',
  'additionalProperties',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
];

/** A subschema that another one applies, and its location. */
interface Part {
  readonly schema: object;
  readonly pointer: string;
}

/**
 * Counts the paths from the root of a schema to its subschemas, through `$ref`s and applicators: a
 * document may be evaluated that many times. A recursive `$ref` counts once, because its depth is
 * limited by the document.
 */
class EvaluationPaths {
  readonly #counts = new Map<object, number>();
  readonly #open = new Set<object>();

  constructor(
    private readonly root: object,
    private readonly refs: ResolvedRefs,
  ) {}

  get count(): number {
    return this.#count(this.root);
  }

  /** The innermost subschema that exceeds the limit by itself, and its number of paths. */
  largest(): { pointer: string; count: number } {
    const seen = new Set<object>();
    let at: Part = { schema: this.root, pointer: '#' };
    for (;;) {
      seen.add(at.schema);
      const next = this.#parts(at).find(
        ({ schema }) => !seen.has(schema) && this.#count(schema) > maxEvaluationPaths,
      );
      if (!next) return { pointer: at.pointer, count: this.#count(at.schema) };
      at = next;
    }
  }

  #count(schema: object): number {
    const known = this.#counts.get(schema);
    if (known !== undefined) return known;
    if (this.#open.has(schema)) return 0;
    this.#open.add(schema);
    let count = 1;
    for (const part of this.#parts({ schema, pointer: '' })) count += this.#count(part.schema);
    this.#open.delete(schema);
    this.#counts.set(schema, count);
    return count;
  }

  #parts({ schema, pointer }: Part): Part[] {
    const keywords = schema as Record<string, unknown>;
    const parts: Part[] = [];
    const add = (value: unknown, at: string): void => {
      if (typeof value === 'object' && value !== null) parts.push({ schema: value, pointer: at });
    };
    for (const name of schemas) add(keywords[name], `${pointer}/${name}`);
    for (const name of [...listsOfSchemas, ...mapsOfSchemas]) {
      for (const [key, value] of Object.entries(keywords[name] ?? {})) {
        add(value, `${pointer}/${name}/${key}`);
      }
    }
    const target = this.refs.get(schema);
    if (target) add(target, String(keywords['$ref']));
    return parts;
  }
}

/** Maximum number of steps of one validation: about a second on a slow core. */
const maxValidationSteps = 10_000_000;

/** Thrown inside a validation that takes too many steps. */
class StepsSpent extends Error {}

/** Counts the steps of a validation: nested `$ref`s can double the work with every level. */
class StepBudget {
  #left = maxValidationSteps;

  reset(): void {
    this.#left = maxValidationSteps;
  }

  readonly spend = (steps: number): void => {
    this.#left -= steps;
    if (this.#left < 0) throw new StepsSpent();
  };

  readonly spendText = (data: unknown): void => {
    this.spend(1 + (typeof data === 'string' ? data.length >>> 6 : 0));
  };

  readonly spendItems = (data: readonly unknown[]): void => this.spend(1 + data.length);

  readonly spendKeys = (data: object, testCount: number): void => {
    this.spend(1 + Object.keys(data).length * testCount);
  };
}

// Keywords that read a whole string, array or object, whatever their own value is.
const readsText = new Set(['pattern', 'format', 'minLength', 'maxLength']);
const readsItems = new Set(['items', 'contains', 'unevaluatedItems']);
const readsKeys = new Set([
  'patternProperties',
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'minProperties',
  'maxProperties',
]);
const comparesValues = new Set(['enum', 'const']);

/** The schema that each `$ref` resolves to, by the object that contains it. */
type ResolvedRefs = Map<object, object>;

/**
 * Makes every keyword of the schemas that `ajv` compiles spend steps of `budget`, and records what
 * their `$ref`s resolve to. Call it before the first schema is compiled.
 */
function countSteps(ajv: Ajv2020, budget: StepBudget, refs: ResolvedRefs): void {
  const { _ } = require('ajv/dist/2020.js') as typeof AjvLibrary;
  const { resolveRef, SchemaEnv } = require('ajv/dist/compile/index.js') as typeof AjvCompile;
  // With `code` in the definition, Ajv itself generates the check.
  type Definition = { code?: (context: KeywordCxt, type?: string) => void };
  for (const rule of new Set(Object.values(ajv.RULES.all))) {
    if (typeof rule !== 'object') continue;
    const definition = rule.definition as Definition;
    const { code } = definition;
    if (!code) continue;
    const counted = (context: KeywordCxt, type?: string): void => {
      const { gen, data, keyword, schema, it } = context;
      if (keyword === '$ref') {
        const { root } = it.schemaEnv;
        const target = resolveRef.call(ajv, root, it.baseId, schema as string);
        const found: unknown = target instanceof SchemaEnv ? target.schema : target;
        if (typeof found === 'object' && found !== null) refs.set(it.schema, found);
      }
      const method = (name: 'spend' | 'spendText' | 'spendItems' | 'spendKeys') =>
        gen.scopeValue('func', { key: name, ref: budget[name] });
      if (readsText.has(keyword)) gen.code(_`${method('spendText')}(${data})`);
      else if (readsItems.has(keyword)) gen.code(_`${method('spendItems')}(${data})`);
      else if (readsKeys.has(keyword)) {
        gen.code(_`${method('spendKeys')}(${data}, ${sizeOf(it.schema['patternProperties'])})`);
      } else gen.code(_`${method('spend')}(${stepsOf(keyword, schema)})`);
      code(context, type);
    };
    // A copy: Ajv shares its definitions between instances.
    rule.definition = { ...rule.definition, code: counted } as typeof rule.definition;
  }
}

function stepsOf(keyword: string, value: unknown): number {
  if (comparesValues.has(keyword)) return 1 + (JSON.stringify(value).length >>> 3);
  return sizeOf(value);
}

/** The number of parts of a keyword's value; at least 1. */
function sizeOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Math.max(1, Array.isArray(value) ? value.length : Object.keys(value).length);
}

export type ValidateMode = 'strict' | 'warn';

/** Why a document does not match a schema. */
interface SchemaIssue {
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

/**
 * Compiles a JSON Schema 2020-12. Refuses BAD_SCHEMA. A schema that is already stored is not
 * refused for too many evaluation paths, because it may predate that limit; its validations are
 * limited anyway.
 */
export function compileSchema(schema: JsonObject, isStored = false): CheckDocument {
  const { $schema } = schema;
  if ($schema !== undefined && !(typeof $schema === 'string' && dialect.test($schema))) {
    throw badSchema(
      `$schema is ${JSON.stringify($schema)}; only JSON Schema 2020-12 is supported ` +
        '(https://json-schema.org/draft/2020-12/schema)',
    );
  }
  const partCount = countParts(schema);
  if (partCount > maxSchemaParts && !isStored) {
    throw badSchema(
      `it has ${partCount} parts, more than ${maxSchemaParts}. Split the collection, or check less`,
    );
  }
  const budget = new StepBudget();
  const refs: ResolvedRefs = new Map();
  const ajv = newAjv(budget, refs);
  if (!ajv.validateSchema(schema)) {
    throw badSchema(issueText(issueOf(ajv.errors ?? [])));
  }
  let validate: ValidateFunction;
  try {
    validate = ajv.compile(schema);
  } catch (error) {
    throw badSchema(compileProblem(error));
  }
  if (!isStored) checkPaths(new EvaluationPaths(schema, refs));
  const check: CheckDocument = (data) => run(validate, data, budget);
  const issue = check({});
  if (issue?.message === endless) throw badSchema(endless);
  return check;
}

const endless = 'the schema refers to itself without end';
const tooManySteps =
  `checking it takes more than ${maxValidationSteps} steps; simplify the schema where the same ` +
  '$ref applies several times to one value, or send a smaller document';

function run(
  validate: ValidateFunction,
  data: JsonObject,
  budget: StepBudget,
): SchemaIssue | undefined {
  budget.reset();
  try {
    return validate(data) ? undefined : issueOf(validate.errors ?? []);
  } catch (error) {
    // A stack overflow: documents are at most 32 levels deep, so only the schema can recurse.
    if (error instanceof RangeError) return { path: [], message: endless };
    if (error instanceof StepsSpent) return { path: [], message: tooManySteps };
    throw error;
  }
}

function checkPaths(paths: EvaluationPaths): void {
  if (paths.count <= maxEvaluationPaths) return;
  const { pointer, count } = paths.largest();
  throw badSchema(
    `a document can be evaluated in ${paths.count} ways, more than ${maxEvaluationPaths}. Already ` +
      `"${pointer}" has ${count}: refer to a shared definition once in it, not several times, or ` +
      'nest fewer levels of $ref',
  );
}

function newAjv(budget: StepBudget, refs: ResolvedRefs): Ajv2020 {
  // Loaded on first use: most databases have no schema.
  const library = require('ajv/dist/2020.js') as typeof AjvLibrary;
  const formats = require('ajv-formats') as typeof addFormats;
  const ajv = new library.Ajv2020({
    strict: false,
    logger: false,
    ownProperties: true,
    // Otherwise Ajv copies the code of a definition into every reference to it.
    inlineRefs: false,
    code: { regExp: linearRegExp },
  });
  formats.default(ajv, { mode: 'fast' });
  // Ajv's implementation compares all pairs: an array of a 2 MiB document would take hours.
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must NOT have duplicate items' },
    compile: (isUnique: boolean) => (items: readonly unknown[]) =>
      !isUnique || countDistinct(items, budget) === items.length,
  });
  countSteps(ajv, budget, refs);
  return ajv;
}

/** RE2 runs in linear time for every pattern. */
const linearRegExp = Object.assign(
  (pattern: string) => {
    const fail = (problem: string) => new PatternError(`the pattern "${pattern}" ${problem}`);
    const test = compileRegex(fromRegExpSyntax(pattern), fail);
    // Ajv distinguishes patterns by their text.
    return { test, toString: () => pattern };
  },
  // Only for code that is generated ahead of time.
  { code: '' },
) as unknown as NonNullable<NonNullable<AjvLibrary.Options['code']>['regExp']>;

class PatternError extends Error {}

function countDistinct(items: readonly unknown[], budget: StepBudget): number {
  const texts = new Set<string>();
  for (const item of items) {
    const text = canonicalText(item);
    budget.spend(1 + (text.length >>> 4));
    texts.add(text);
  }
  return texts.size;
}

function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

// Compiling a part takes up to a millisecond, in which nothing else runs.
const maxSchemaParts = 5_000;
const plainValues = new Set(['enum', 'const', 'default', 'examples']);

/** The number of objects of a schema. Refuses `$async`: a promise would count as a match. */
function countParts(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (Object.hasOwn(value, '$async')) throw badSchema('$async is not part of JSON Schema');
  let count = Array.isArray(value) ? 0 : 1;
  for (const [name, part] of Object.entries(value)) {
    // A literal value is not a subschema, but a $ref may point to it.
    const parts = countParts(part);
    if (!plainValues.has(name)) count += parts;
  }
  return count;
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

/**
 * Applicators add their own error after those of their subschemas; that of `if` is less specific.
 */
function issueOf(errors: readonly Partial<ErrorObject>[]): SchemaIssue {
  const last = errors.findLast(({ keyword }) => keyword !== 'if') ?? errors.at(-1) ?? {};
  // For an unknown `type` in a schema the list of types is more useful than "anyOf".
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
