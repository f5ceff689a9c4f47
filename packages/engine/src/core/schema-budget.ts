import { createRequire } from 'node:module';
import type { Ajv2020, KeywordCxt } from 'ajv/dist/2020.js';
import type * as AjvLibrary from 'ajv/dist/2020.js';
import type * as AjvCompile from 'ajv/dist/compile/index.js';

/** Maximum number of steps of one validation: about a second on a slow core. */
export const maxValidationSteps = 10_000_000;

const require = createRequire(import.meta.url);

/** Thrown inside a validation that takes too many steps. */
export class StepsSpent extends Error {}

/** Counts the steps of a validation: nested `$ref`s can double the work with every level. */
export class StepBudget {
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
export type ResolvedRefs = Map<object, object>;

/**
 * Makes every keyword of the schemas that `ajv` compiles spend steps of `budget`, and records what
 * their `$ref`s resolve to. Call it before the first schema is compiled.
 */
export function countSteps(ajv: Ajv2020, budget: StepBudget, refs: ResolvedRefs): void {
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
