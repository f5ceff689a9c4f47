import type { Json, JsonObject } from '../value/documents.js';
import type { Path } from '../value/path.js';

export type Projection = (data: JsonObject) => JsonObject;

/** Which members to keep, by name; `true` keeps all of one. */
type FieldTree = Map<string, FieldTree | true>;

/**
 * Keeps the parts of a document that the paths select, in their place. In an array a name applies
 * to every element, and elements without it are left out; a number keeps only that element.
 */
export function compileProjection(paths: readonly Path[]): Projection {
  const fields: FieldTree = new Map();
  for (const path of paths) {
    let level = fields;
    for (const [i, { name }] of path.segments.entries()) {
      const known = level.get(name);
      if (known === true) break;
      if (i === path.segments.length - 1) level.set(name, true);
      else {
        const next: FieldTree = known ?? new Map();
        level.set(name, next);
        level = next;
      }
    }
  }
  return (data) => keepObject(data, fields) ?? {};
}

function keepParts(value: Json, fields: FieldTree | true): Json | undefined {
  if (fields === true) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  return Array.isArray(value) ? keepArray(value, fields) : keepObject(value, fields);
}

function keepObject(object: JsonObject, fields: FieldTree): JsonObject | undefined {
  let result: JsonObject | undefined;
  for (const [name, below] of fields) {
    if (!Object.hasOwn(object, name)) continue;
    const part = keepParts(object[name]!, below);
    if (part !== undefined) (result ??= {})[name] = part;
  }
  return result;
}

function keepArray(items: Json[], fields: FieldTree): Json[] | undefined {
  const result: Json[] = [];
  const names: FieldTree = new Map([...fields].filter(([name]) => !/^\d+$/.test(name)));
  for (const [i, item] of items.entries()) {
    const picked = fields.get(String(i));
    const part = picked ? keepParts(item, picked) : names.size > 0 && keepParts(item, names);
    if (part !== undefined && part !== false) result.push(part);
  }
  return result.length > 0 ? result : undefined;
}
