import type { DbRecord } from './api.js';

export interface InferredField {
  /** Dotted path. */
  path: string;
  /** Types seen, the most frequent first. */
  types: readonly string[];
  /** Share of the sampled records that have it, 0 to 100. */
  percent: number;
}

const maxDepth = 3;
const maxFields = 200;

/** The fields of a sample of records: paths, types, and how many records have them. */
export function inferFields(records: readonly Pick<DbRecord, 'data'>[]): InferredField[] {
  const seen = new Map<string, Map<string, number>>();
  for (const { data } of records) visit(data, '', 1, seen);
  return [...seen].slice(0, maxFields).map(([path, types]) => {
    const found = [...types].toSorted((a, b) => b[1] - a[1]);
    const total = found.reduce((sum, [, size]) => sum + size, 0);
    return {
      path,
      types: found.map(([type]) => type),
      percent: Math.round((100 * total) / records.length),
    };
  });
}

function visit(
  value: object,
  prefix: string,
  depth: number,
  seen: Map<string, Map<string, number>>,
): void {
  for (const [name, child] of Object.entries(value)) {
    const path = prefix + name;
    const type = typeOf(child);
    let types = seen.get(path);
    if (!types) seen.set(path, (types = new Map<string, number>()));
    types.set(type, (types.get(type) ?? 0) + 1);
    if (type === 'object' && depth < maxDepth) visit(child as object, `${path}.`, depth + 1, seen);
  }
}

/** The types of JSON Schema. */
function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}
