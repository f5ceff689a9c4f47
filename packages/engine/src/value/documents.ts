import type { DbReason } from '@millrace/contract/db-reasons';
import { Refusal, type RefusalExtra } from '@millrace/kit/errors';

/** An error of the database: `throw refuse('KEY_NOT_FOUND', '...')`. */
export function refuse(
  reason: DbReason,
  detail: string,
  /** For `ErrorInfo.metadata`, such as the current rev of a REV_MISMATCH. */
  metadata?: Readonly<Record<string, string>>,
  extra: RefusalExtra = {},
): Refusal<DbReason> {
  return new Refusal(reason, detail, metadata ? { ...extra, members: { metadata } } : extra);
}

/** The values of a document: JSON. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** A merge patch of T (RFC 7396): null removes a field, objects merge, the rest replaces. */
export type Patch<T> = T extends unknown[]
  ? T
  : T extends object
    ? { [Field in keyof T]?: Patch<T[Field]> | null }
    : T;

export const maxDepth = 32;
export const maxRecordBytes = 2 * 1024 * 1024;
export const maxKeyBytes = 1024;

const collectionPattern = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** Takes anything, because callers may be untyped. */
export function checkCollectionName(name: unknown): void {
  if (typeof name === 'string' && collectionPattern.test(name)) return;
  const collection = String(name);
  throw refuse(
    'BAD_COLLECTION',
    `"${collection}" cannot name a collection: a letter, then up to 63 letters, digits, "_", "." or "-".`,
    { collection },
  );
}

export function checkKey(key: string): void {
  const problem = keyProblem(key);
  if (problem) throw refuse('BAD_KEY', `A key ${problem}.`);
}

function keyProblem(key: string): string | undefined {
  if (typeof key !== 'string') return 'must be a string';
  if (key === '') return 'must not be empty';
  if (key.length > maxKeyBytes || Buffer.byteLength(key) > maxKeyBytes) {
    return `takes at most ${maxKeyBytes} bytes of UTF-8, this one ${Buffer.byteLength(key)}`;
  }
  if (key.includes('\0')) return 'must not contain NUL';
  if (!key.isWellFormed()) return 'must be well-formed Unicode (it has a lone surrogate)';
  return undefined;
}

/**
 * A clean copy of a document as JSON would carry it: no undefined, no class instances, no number
 * that JSON cannot represent. The copy also protects stored data from later changes by the caller.
 */
export function toDocument(value: unknown, name = 'data'): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refuse('BAD_DATA', `${name} must be a JSON object, not ${describe(value)}.`);
  }
  return copyObject(value, undefined, 1);
}

/**
 * As `toDocument`, for a value to which the caller keeps no reference: a clean one, such as nearly
 * all parsed JSON, is not copied.
 */
export function ownDocument(value: unknown, name = 'data'): JsonObject {
  const isClean = typeof value === 'object' && value !== null && isCleanObject(value, 1);
  return isClean ? (value as JsonObject) : toDocument(value, name);
}

function isCleanObject(object: object, depth: number): boolean {
  if (depth > maxDepth || Object.getPrototypeOf(object) !== Object.prototype) return false;
  for (const name of Object.keys(object)) {
    if (!isFieldName(name)) return false;
    if (!isCleanValue((object as Record<string, unknown>)[name], depth)) return false;
  }
  return true;
}

function isCleanValue(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed();
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0);
    case 'boolean':
      return true;
    case 'object':
      if (value === null) return true;
      return Array.isArray(value)
        ? isCleanArray(value, depth + 1)
        : isCleanObject(value, depth + 1);
    default:
      return false;
  }
}

function isCleanArray(array: readonly unknown[], depth: number): boolean {
  if (depth > maxDepth) return false;
  for (let i = 0; i < array.length; i++) if (!isCleanValue(array[i], depth)) return false;
  return true;
}

/** Whether a field of a document may have this name. */
export function isFieldName(name: string): boolean {
  return name !== '__proto__' && name.isWellFormed();
}

/** A place in a document. Converted to text only for an error. */
interface Place {
  parent: Place | undefined;
  name: string | number;
}

function copyObject(value: object, place: Place | undefined, depth: number): JsonObject {
  if (depth > maxDepth) throw tooDeep(place);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) checkPlain(value, place);
  const copy: JsonObject = {};
  for (const name of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[name];
    if (member === undefined) continue;
    if (!isFieldName(name)) {
      throw refuse('BAD_DATA', `"${name}" cannot be the name of a field (at "${pathOf(place)}").`);
    }
    copy[name] = copyValue(member, place, name, depth);
  }
  return copy;
}

function copyValue(
  value: unknown,
  parent: Place | undefined,
  name: string | number,
  depth: number,
): Json {
  switch (typeof value) {
    case 'string':
      if (value.isWellFormed()) return value;
      throw refuse('BAD_DATA', `The text at "${pathOf({ parent, name })}" has a lone surrogate.`);
    case 'number':
      // Adding 0 turns -0, which JSON cannot represent, into 0.
      if (Number.isFinite(value)) return value + 0;
      throw refuse('BAD_DATA', `JSON has no ${value} (at "${pathOf({ parent, name })}").`);
    case 'boolean':
      return value;
    case 'object':
      if (value === null) return null;
      return Array.isArray(value)
        ? copyArray(value, { parent, name }, depth + 1)
        : (formOf(value, parent, name, depth) ?? copyObject(value, { parent, name }, depth + 1));
    default:
      throw refuse('BAD_DATA', `data at "${pathOf({ parent, name })}" is ${describe(value)}.`);
  }
}

function formOf(
  value: object,
  parent: Place | undefined,
  name: string | number,
  depth: number,
): Json | undefined {
  if (Object.getPrototypeOf(value) === Object.prototype) return undefined;
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    throw refuse('BAD_DATA', `data at "${pathOf({ parent, name })}" is an invalid Date.`);
  }
  const form = jsonForm(value);
  // A vector with NaN is refused like any other array.
  return Array.isArray(form) ? copyArray(form, { parent, name }, depth + 1) : form;
}

function copyArray(array: readonly unknown[], place: Place, depth: number): Json[] {
  if (depth > maxDepth) throw tooDeep(place);
  const copy: Json[] = [];
  for (let i = 0; i < array.length; i++) {
    const item = array[i];
    // A hole or undefined in an array becomes null, as in JSON.stringify.
    copy.push(item === undefined ? null : copyValue(item, place, i, depth));
  }
  return copy;
}

function checkPlain(value: object, place: Place | undefined): void {
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    throw refuse(
      'BAD_DATA',
      `data at "${pathOf(place)}" is ${describe(value)}: store it in a JSON form.`,
    );
  }
  // Objects of another realm or decoder count as plain.
  if (!isPlain(value))
    throw refuse('BAD_DATA', `data at "${pathOf(place)}" is ${describe(value)}.`);
}

function tooDeep(place: Place | undefined) {
  return refuse('BAD_DATA', `data is nested deeper than ${maxDepth} levels at "${pathOf(place)}".`);
}

function pathOf(place: Place | undefined): string {
  const names: (string | number)[] = [];
  for (let at = place; at; at = at.parent) names.unshift(at.name);
  return names.join('.');
}

function isPlain(value: object): boolean {
  return Object.prototype.toString.call(value) === '[object Object]' && !isClassInstance(value);
}

function isClassInstance(value: object): boolean {
  const maker: unknown = (value as { constructor?: unknown }).constructor;
  return typeof maker === 'function' && maker.name !== 'Object';
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return `a ${value.constructor?.name ?? 'class instance'}`;
  return value === undefined ? 'missing' : `a ${typeof value}`;
}

/** RFC 7396: null removes, objects merge, everything else replaces. Changes neither argument. */
export function mergePatch(target: JsonObject, patch: JsonObject): JsonObject {
  const merged: JsonObject = { ...target };
  for (const name of Object.keys(patch)) {
    const value = patch[name]!;
    if (value === null) delete merged[name];
    else if (!isObject(value)) merged[name] = value;
    else {
      const old = merged[name];
      merged[name] = mergePatch(old !== undefined && isObject(old) ? old : {}, value);
    }
  }
  return merged;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Refuses BAD_SCHEMA for anything but an object; used in process and in the client. */
export function checkSchemaObject(schema: unknown): asserts schema is object {
  if (typeof schema === 'object' && schema !== null && !Array.isArray(schema)) return;
  throw refuse('BAD_SCHEMA', 'The schema cannot be used: it must be a JSON object.');
}

export type UpdateMode = 'replace' | 'merge';
/** `operators`: the data is an update such as `{ $inc: { n: 1 } }`. */
export type WriteMode = UpdateMode | 'operators';

/** Whether a value is meant as update operators: a name at its top begins with a dollar sign. */
export function isUpdate(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  for (const name in value) if (name.startsWith('$')) return true;
  return false;
}

/** A document must not look like an update: it would be stored where an operator was meant. */
export function refuseOperators(data: unknown): void {
  if (!isUpdate(data)) return;
  const name = Object.keys(data).find((each) => each.startsWith('$'));
  throw refuse(
    'BAD_DATA',
    `"${name}" cannot be a field at the top of a document: names with "$" are update operators. ` +
      'Send operators as "update", or with update() or updateMany().',
  );
}

/** A time as it is stored: RFC 3339 in UTC with milliseconds, which sorts by time as text. */
export function date(value: Date | number | string): string {
  const time = new Date(value);
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw refuse('BAD_DATA', `${JSON.stringify(value)} is not a time: use a Date or RFC 3339 text.`);
}

/** The JSON form of a Date, of bytes or of a vector; undefined for other values. */
export function jsonForm(value: object): Json | undefined {
  if (value instanceof Date) return date(value);
  if (value instanceof Uint8Array) {
    const { buffer, byteOffset, byteLength } = value;
    return { $bytes: Buffer.from(buffer, byteOffset, byteLength).toString('base64') };
  }
  return value instanceof Float32Array ? Array.from(value) : undefined;
}

/** Whether the mode is a merge. Refuses anything but the two modes, in upper or lower case. */
export function isMerge(mode: string | undefined): boolean {
  if (mode === undefined || mode === 'replace' || mode === 'REPLACE') return false;
  if (mode === 'merge' || mode === 'MERGE') return true;
  throw refuse('BAD_REQUEST', `mode must be "replace" or "merge", not ${JSON.stringify(mode)}.`);
}
