import type { ResolvedRefs } from './schema-budget.js';

export const maxEvaluationPaths = 1_000_000;

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
export class EvaluationPaths {
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
