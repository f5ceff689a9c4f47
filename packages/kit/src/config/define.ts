import type { z } from 'zod';
import { coreOf, defaultOf, defOf, settingsOf, type Setting } from './schema.js';
import type { UnknownKeys } from './yaml-file.js';

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
export function writtenForm(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
