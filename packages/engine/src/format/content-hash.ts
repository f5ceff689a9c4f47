import { crc32 } from 'node:zlib';
import type { Json, JsonObject } from '../value/documents.js';

/**
 * A hash of the content of a document, whatever its encoding: a follower and a restored backup,
 * which encode it differently, compute the same hash. Every step is a bijection, so a change of a
 * single character or number always changes the hash. It walks the document because serializing it
 * as JSON only to hash the text took a fifth of a write.
 */
export function contentHash(document: JsonObject): number {
  return endHash(hashObject(document, beginHash));
}

/** The last step of a hash. */
export function endHash(started: number): number {
  let hash = started;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export const beginHash = 0x811c9dc5 | 0;
export const tags = {
  null: 1,
  true: 2,
  false: 3,
  integer: 4,
  number: 5,
  text: 6,
  array: 7,
  object: 8,
};
/** Beyond this length the native hash is faster than a loop. */
export const shortText = 96;

const float = new Float64Array(1);
const words = new Uint32Array(float.buffer);

/** Field names repeat, so their hashes are cached. */
const nameHashes = new Map<string, number>();
const maxNames = 4_096;

function hashObject(object: JsonObject, start: number): number {
  const names = Object.keys(object);
  let hash = mix(mix(start, tags.object), names.length);
  for (const name of names) hash = hashValue(object[name]!, mix(hash, nameHash(name)));
  return hash;
}

function hashValue(value: Json, start: number): number {
  switch (typeof value) {
    case 'string':
      return hashText(value, mix(start, tags.text));
    case 'number':
      return mixNumber(start, value);
    case 'boolean':
      return mix(start, value ? tags.true : tags.false);
    default:
      if (value === null) return mix(start, tags.null);
      return Array.isArray(value) ? hashArray(value, start) : hashObject(value, start);
  }
}

function hashArray(array: readonly Json[], start: number): number {
  let hash = mix(mix(start, tags.array), array.length);
  for (let i = 0; i < array.length; i++) hash = hashValue(array[i]!, hash);
  return hash;
}

export function mixNumber(start: number, value: number): number {
  if ((value | 0) === value) return mix(mix(start, tags.integer), value);
  float[0] = value;
  return mix(mix(mix(start, tags.number), words[0]!), words[1]!);
}

function hashText(text: string, start: number): number {
  let hash = mix(start, text.length);
  if (text.length > shortText) return mix(hash, crc32(text));
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}

export function nameHash(name: string): number {
  const known = nameHashes.get(name);
  if (known !== undefined) return known;
  const hash = hashText(name, beginHash);
  if (nameHashes.size >= maxNames) nameHashes.clear();
  nameHashes.set(name, hash);
  return hash;
}

export function mix(hash: number, value: number): number {
  const mixed = Math.imul(hash ^ value, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
