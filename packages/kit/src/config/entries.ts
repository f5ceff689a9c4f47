import { hidden, scrubText } from '../base/secrecy.js';
import type { NamedSetting } from './define.js';
import { isSecret } from './problems.js';
import { defaultOf, schemaAt, type Schema } from './schema.js';
import { sourceText, type Given } from './source.js';

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
