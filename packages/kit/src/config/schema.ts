import { z } from 'zod';
import { messageOf, UsageError } from '../base/errors.js';
import {
  byteSizeExample,
  countExample,
  durationExample,
  formatByteSize,
  formatCount,
  formatDuration,
  parseByteSize,
  parseCount,
  parseDuration,
  UnitError,
} from '../base/units.js';
import { addressExample, addressOf } from './address.js';

/** Any zod schema. */
export type Schema = z.core.$ZodType;

/**
 * Metadata of a setting, given by `.meta({...})`:
 * `path().default('./data').meta({ description: 'Directory of the tasks' })`.
 */
export interface SettingNotes {
  description?: string;
  /** A value to show in help. */
  example?: string;
  /** Never shown, neither by `ctl config` nor in a message. */
  secret?: boolean;
  /** A file or directory, relative to the config file; `~/` is the home directory. */
  path?: boolean;
  /** Further names of the flag, without dashes. */
  aliases?: readonly string[];
  /** Makes its use a warning; says what to do instead. */
  deprecation?: string;
  /** What a right value is: "a duration such as 15m". */
  expected?: string;
  /** The word for the value in help: `file` in `--tokens-file <file>`. */
  placeholder?: string;
  /** Can change while the server runs. */
  live?: boolean;
}

/** Zod compiles code for a schema before its first use, which pays off only after many. */
export const parsedOnce = { jitless: true } as const;

type Def = z.core.$ZodTypes['_zod']['def'];

export function defOf(schema: Schema): Def {
  const { _zod: internals } = schema as z.core.$ZodTypes;
  return internals.def;
}

/** One layer of optional, default, transform and the like; `undefined` at the core. */
function inside(schema: Schema): Schema | undefined {
  const def = defOf(schema);
  if ('innerType' in def) return def.innerType;
  if (def.type === 'lazy') return def.getter();
  // A preprocess is a pipe that starts with the transform.
  if (def.type === 'pipe') return defOf(def.in).type === 'transform' ? def.out : def.in;
  return undefined;
}

/** From the outermost wrapper to what a person writes. */
function layers(schema: Schema): Schema[] {
  const all = [schema];
  for (let next = inside(schema); next; next = inside(next)) all.push(next);
  return all;
}

/** The schema of what a person writes, without optional, default, transform and the like. */
export function coreOf(schema: Schema): Schema {
  return layers(schema).at(-1)!;
}

export function notesOf(schema: Schema): SettingNotes {
  const notes: SettingNotes = {};
  for (const layer of layers(schema).toReversed())
    Object.assign(notes, z.globalRegistry.get(layer));
  return notes;
}

/** The default in written form; `undefined` when there is none. */
export function defaultOf(schema: Schema): unknown {
  for (const layer of layers(schema)) {
    const def = defOf(layer);
    if (def.type === 'default' || def.type === 'prefault') return def.defaultValue;
  }
  return undefined;
}

export function isOptional(schema: Schema): boolean {
  return layers(schema).some((layer) =>
    ['optional', 'default', 'prefault', 'catch'].includes(defOf(layer).type),
  );
}

/** The known members of a map, or `undefined` when it allows any key. */
export function shapeOf(schema: Schema): Readonly<Record<string, Schema>> | undefined {
  const def = defOf(coreOf(schema));
  if (def.type !== 'object') return undefined;
  const open = def.catchall !== undefined && defOf(def.catchall).type !== 'never';
  return open ? undefined : def.shape;
}

/**
 * The schema of one member or item; `undefined` where there is none. Of several forms that a
 * map may have, the one that `value`, the whole document, chose by its literal members.
 */
export function schemaAt(
  schema: Schema,
  path: readonly PropertyKey[],
  value?: unknown,
): Schema | undefined {
  let current: Schema | undefined = schema;
  let here = value;
  for (const step of path) {
    if (!current) return undefined;
    current = stepInto(formOf(current, here), step);
    here = memberOf(here, step);
  }
  return current;
}

function stepInto(schema: Schema, step: PropertyKey): Schema | undefined {
  const def = defOf(coreOf(schema));
  if (def.type === 'array') return def.element;
  if (def.type === 'record') return def.valueType;
  if (def.type === 'tuple') return def.items[Number(step)];
  if (def.type !== 'object') return undefined;
  const shape: Readonly<Record<string, Schema>> = def.shape;
  if (Object.hasOwn(shape, step)) return shape[String(step)];
  return def.catchall && defOf(def.catchall).type !== 'never' ? def.catchall : undefined;
}

/** The form of a union that a value chose, or the schema itself. */
export function formOf(schema: Schema, value: unknown): Schema {
  const def = defOf(coreOf(schema));
  if (def.type !== 'union' || typeof value !== 'object' || value === null) return schema;
  const chosen = def.options.find((option) => {
    const members = Object.entries(shapeOf(option) ?? {});
    const literals = members.filter(([, member]) => defOf(coreOf(member)).type === 'literal');
    return (
      literals.length > 0 &&
      literals.every(([name, member]) => literalsOf(member).includes(memberOf(value, name)))
    );
  });
  return chosen ?? schema;
}

function literalsOf(schema: Schema): readonly unknown[] {
  const def = defOf(coreOf(schema));
  return def.type === 'literal' ? def.values : [];
}

/** One member of a map or item of a list, or `undefined`. */
export function memberOf(value: unknown, step: PropertyKey): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.hasOwn(value, step) ? (value as Record<PropertyKey, unknown>)[step] : undefined;
}

/** One setting: what can be set by a flag, a variable or a line of the file. */
export interface Setting {
  /** `limits.max_in_flight` */
  key: string;
  path: readonly string[];
  schema: Schema;
  notes: SettingNotes;
}

/** Every setting of a schema, in its order. Nested objects are groups, everything else is one. */
export function settingsOf(schema: Schema, path: readonly string[] = []): Setting[] {
  return Object.entries(shapeOf(schema) ?? {}).flatMap(([name, member]) => {
    const here = [...path, name];
    if (shapeOf(member)) return settingsOf(member, here);
    return [{ key: here.join('.'), path: here, schema: member, notes: notesOf(member) }];
  });
}

/*
 * Types of settings beyond those of YAML. Where the written form differs from the value, give the
 * default in written form with `prefault`: `duration().prefault('15m')`.
 */

/** A file or directory; see `SettingNotes.path`. */
export function path() {
  return z.string().min(1).meta({ path: true, expected: 'a path', placeholder: 'path' });
}

/** `host:port`. */
export function address() {
  return z
    .string()
    .transform(reading(addressOf))
    .meta({ expected: addressExample, placeholder: 'host:port' });
}

/** Text that is never shown. */
export function secret() {
  return z.string().min(1).meta({ secret: true, placeholder: 'secret' });
}

interface Limits {
  min?: number;
  max?: number;
}

/** `1h30m`, in milliseconds. */
export function duration(limits: Limits = {}) {
  return measure(z.string(), durationExample, 'duration', parseDuration, formatDuration, limits);
}

const wholeOrText = z.union([z.int().min(0), z.string()]);

/** `256KiB` or a number of bytes. */
export function byteSize(limits: Limits = {}) {
  return measure(wholeOrText, byteSizeExample, 'size', parseByteSize, formatByteSize, limits);
}

/** `200k` or a number. */
export function count(limits: Limits = {}) {
  return measure(wholeOrText, countExample, 'count', parseCount, formatCount, limits);
}

function measure<S extends z.ZodType<string | number>>(
  written: S,
  example: string,
  placeholder: string,
  parse: (text: string) => number,
  format: (value: number) => string,
  { min = 0, max = Number.MAX_SAFE_INTEGER }: Limits,
) {
  let expected = example;
  if (min > 0) expected += `, at least ${format(min)}`;
  if (max < Number.MAX_SAFE_INTEGER) expected += `, at most ${format(max)}`;
  return written
    .transform(
      reading((text: string | number) => {
        const value = parse(String(text));
        if (value < min || value > max) throw UnitError.expected(expected, String(text));
        return value;
      }),
    )
    .meta({ expected, placeholder });
}

// Only UnitError and UsageError are mistakes of the user.
function reading<From, To>(read: (written: From) => To) {
  return (written: From, context: z.RefinementCtx): To => {
    try {
      return read(written);
    } catch (error) {
      if (!(error instanceof UnitError || error instanceof UsageError)) throw error;
      context.addIssue({ code: 'custom', message: messageOf(error) });
      return z.NEVER;
    }
  };
}
