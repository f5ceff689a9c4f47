import type { Json, JsonObject } from '../documents.js';
import type { Path } from '../value/path.js';

export type Projection = (data: JsonObject) => JsonObject;

/** Which members to keep, by name; `true` keeps one whole. */
type Kept = Map<string, Kept | true>;

/**
 * Keeps the parts of a document that the paths name, where they stand. In an array a name goes on
 * into every element, and elements that have nothing of it are left out; a number keeps that
 * element alone.
 */
export function compileProjection(paths: readonly Path[]): Projection {
  const kept: Kept = new Map();
  for (const path of paths) {
    let level = kept;
    for (const [i, { name }] of path.segments.entries()) {
      const known = level.get(name);
      if (known === true) break;
      if (i === path.segments.length - 1) level.set(name, true);
      else {
        const next: Kept = known ?? new Map();
        level.set(name, next);
        level = next;
      }
    }
  }
  return (data) => keepObject(data, kept) ?? {};
}

function keepParts(value: Json, kept: Kept | true): Json | undefined {
  if (kept === true) return value;
  if (typeof value !== 'object' || value === null) return undefined;
  return Array.isArray(value) ? keepArray(value, kept) : keepObject(value, kept);
}

function keepObject(object: JsonObject, kept: Kept): JsonObject | undefined {
  let result: JsonObject | undefined;
  for (const [name, below] of kept) {
    if (!Object.hasOwn(object, name)) continue;
    const part = keepParts(object[name]!, below);
    if (part !== undefined) (result ??= {})[name] = part;
  }
  return result;
}

function keepArray(items: Json[], kept: Kept): Json[] | undefined {
  const result: Json[] = [];
  const names: Kept = new Map([...kept].filter(([name]) => !/^\d+$/.test(name)));
  for (const [i, item] of items.entries()) {
    const picked = kept.get(String(i));
    const part = picked ? keepParts(item, picked) : names.size > 0 && keepParts(item, names);
    if (part !== undefined && part !== false) result.push(part);
  }
  return result.length > 0 ? result : undefined;
}
