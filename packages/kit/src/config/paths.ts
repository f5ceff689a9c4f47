import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { coreOf, defOf, notesOf, schemaAt, type Schema } from './schema.js';

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
