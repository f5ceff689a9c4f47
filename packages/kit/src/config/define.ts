import type { z } from 'zod';
import {
  coreOf,
  defaultOf,
  defOf,
  settingsOf,
  type Setting,
  schemaAt,
  type Schema,
  notesOf,
} from './schema.js';
import { type UnknownKeys, positionOf, type Position, type YamlNode } from './yaml-file.js';
import { expectation, pathText, isSecret } from './problems.js';
import { hidden, scrubText } from '../base/log.js';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** The settings of one server; file keys, flags and variables are derived from them. */
export interface ConfigDefinition<S extends z.ZodObject = z.ZodObject> {
  /** `queue`, `db` or `daemon`. */
  component: string;
  schema: S;
  unknownKeys: UnknownKeys;
  settings: readonly NamedSetting[];
}

export interface NamedSetting extends Setting {
  /** `limits-max-in-flight` */
  flag: string;
  /** `MILLRACE_QUEUE_LIMITS_MAX_IN_FLIGHT` */
  variable: string;
}

/** The variables of the daemon have no component in their prefix. */
export function variablePrefix(component: string): string {
  return component === 'daemon' ? 'MILLRACE_' : `MILLRACE_${component.toUpperCase()}_`;
}

export function defineConfig<S extends z.ZodObject>(definition: {
  component: string;
  schema: S;
  unknownKeys: UnknownKeys;
}): ConfigDefinition<S> {
  const prefix = variablePrefix(definition.component);
  const settings = settingsOf(definition.schema).map((setting) => ({
    ...setting,
    flag: setting.key.replaceAll(/[._]/g, '-'),
    variable: prefix + setting.key.replaceAll('.', '_').toUpperCase(),
  }));
  const taken = new Map<string, string>([['config', '--config']]);
  for (const { key, flag, notes } of settings) {
    for (const name of [flag, ...(notes.aliases ?? [])]) {
      const other = taken.get(name);
      if (other) throw new Error(`The settings ${other} and ${key} would share the flag --${name}`);
      taken.set(name, key);
    }
  }
  return { ...definition, settings };
}

/** One flag for a command line to offer. */
export interface FlagDescription {
  /** Without dashes. */
  name: string;
  aliases: readonly string[];
  /** The setting; none for `--config`. */
  key?: string;
  /** As help and parsers write it: `--tokens-file <path>`, `--savings [on|off]`. */
  syntax: string;
  /** `switch`: needs no value, and `--no-name` turns it off. `list`: may be repeated. */
  kind: 'value' | 'switch' | 'list';
  description: string;
  /** As a person would write it. */
  default?: string;
  example?: string;
  variable?: string;
}

/** Every flag of a server, `--config` first. */
export function flagsOf(definition: ConfigDefinition): FlagDescription[] {
  const config: FlagDescription = {
    name: 'config',
    aliases: [],
    syntax: '--config <path>',
    kind: 'value',
    description: 'Read settings from this YAML file',
  };
  return [config, ...definition.settings.map(flagOf)];
}

function flagOf({ key, flag, variable, schema, notes }: NamedSetting): FlagDescription {
  const type = defOf(coreOf(schema)).type;
  const kind = type === 'boolean' ? 'switch' : type === 'array' ? 'list' : 'value';
  const standard = defaultOf(schema);
  const value = kind === 'switch' ? '[on|off]' : `<${notes.placeholder ?? placeholderOf(type)}>`;
  return {
    name: flag,
    aliases: notes.aliases ?? [],
    key,
    syntax: `--${flag} ${value}`,
    kind,
    description: notes.description ?? '',
    ...(standard === undefined || notes.secret ? {} : { default: writtenForm(standard) }),
    ...(notes.example === undefined ? {} : { example: notes.example }),
    variable,
  };
}

function placeholderOf(type: string): string {
  if (type === 'number') return 'number';
  return type === 'array' || type === 'object' || type === 'record' ? 'yaml' : 'text';
}

/** A value as written in a file or a flag. */
function writtenForm(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** What a form needs to know about a setting. */
export interface SettingDescription {
  description: string;
  /** As written; `null` when there is none. */
  default: unknown;
  /** To follow "must be": "a duration such as 15m". */
  expected: string;
  /** The values of a choice. */
  choices: readonly string[] | undefined;
}

export function describeSetting({ schema, notes }: NamedSetting): SettingDescription {
  const def = defOf(coreOf(schema));
  return {
    description: notes.description ?? '',
    default: defaultOf(schema) ?? null,
    expected: expectation(schema),
    choices: def.type === 'enum' ? Object.values(def.entries).map(String) : undefined,
  };
}

/** Where a setting's value came from. */
export type Source =
  | { kind: 'flag'; flag: string }
  | { kind: 'environment'; variable: string }
  | ({ kind: 'file'; file: string } & Position)
  | { kind: 'default' };

/** `--listen`, `$MILLRACE_LISTEN`, `queue.yaml:12` or `default`. */
export function sourceText(source: Source): string {
  if (source.kind === 'flag') return `--${source.flag}`;
  if (source.kind === 'environment') return `$${source.variable}`;
  return source.kind === 'file' ? `${source.file}:${source.line}` : 'default';
}

/** A value that was set, before validation. */
export interface Given {
  value: unknown;
  source: Source;
  /** The YAML node of the setting, to find the lines of its members. */
  node?: YamlNode;
}

/** The place and name of `inner` of a setting, to start a message. */
export function about(
  key: string,
  given: Given | undefined,
  inner: readonly PropertyKey[],
): { place: string; name: string } {
  const source: Source = given?.source ?? { kind: 'default' };
  if (source.kind === 'file') {
    const line = given?.node && inner.length > 0 ? positionOf(given.node, inner).line : source.line;
    return { place: `${source.file}:${line}: `, name: pathText([key, ...inner]) };
  }
  const name = source.kind === 'default' ? key : sourceText(source);
  return { place: '', name: pathText([name, ...inner]) };
}

/** One line of `ctl config`, with secrets redacted. */
export interface ConfigEntry {
  key: string;
  /** As written, paths made absolute; `null` when it is not set. */
  value: unknown;
  /** `--listen`, `$MILLRACE_LISTEN`, `queue.yaml:12` or `default`. */
  source: string;
  description: string;
  flag: string;
  variable: string;
}

export function entryOf(setting: NamedSetting, given: Given | undefined): ConfigEntry {
  const { key, flag, variable, schema, notes } = setting;
  const value = given ? given.value : defaultOf(schema);
  const secret = notes.secret ?? isSecret([key.split('.').at(-1)!], schema);
  return {
    key,
    value: showable(value, schema, secret),
    source: sourceText(given?.source ?? { kind: 'default' }),
    description: notes.description ?? '',
    flag: `--${flag}`,
    variable,
  };
}

function showable(value: unknown, schema: Schema, secret: boolean): unknown {
  if (value === undefined || value === null) return null;
  if (secret) return value === '' ? '' : hidden;
  if (typeof value === 'string') return scrubText(value);
  if (typeof value !== 'object') return value;
  const inside = (member: unknown, step: string | number) =>
    showable(member, schemaAt(schema, [step]) ?? schema, isSecret([step], schema));
  if (Array.isArray(value)) return value.map(inside);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, inside(member, name)]),
  );
}

/** Makes the paths inside a value absolute. `base` is where relative ones start. */
export function absolutePaths(schema: Schema, value: unknown, base: string, home: string): unknown {
  if (typeof value === 'string') {
    return notesOf(schema).path && value !== '' ? absolutePath(value, base, home) : value;
  }
  if (typeof value !== 'object' || value === null) return value;
  const inside = (member: unknown, step: PropertyKey) => {
    const inner = schemaAt(schema, [step]);
    return inner ? absolutePaths(inner, member, base, home) : member;
  };
  if (Array.isArray(value)) return value.map(inside);
  if (!['object', 'record'].includes(defOf(coreOf(schema)).type)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, inside(member, name)]),
  );
}

function absolutePath(path: string, base: string, home: string): string {
  if (path === '~') return home;
  return path.startsWith('~/') ? join(home, path.slice(2)) : resolve(base, path);
}

/** The home directory, for `~/`. */
export function homeOf(environment: Readonly<Record<string, string | undefined>>): string {
  return environment['HOME'] || homedir();
}
