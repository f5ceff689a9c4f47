import type { z } from 'zod';
import { UsageError } from '../base/errors.js';
import { pathText, problemsOf, unknownKeys, type Problem } from './problems.js';
import { parsedOnce } from './schema.js';
import { readTextFile } from './text-file.js';
import { positionOf, readYamlTree, valueOf, type YamlNode } from './yaml-tree.js';

export type UnknownKeys = 'refuse' | 'warn';

export interface YamlOptions {
  /** Whether a key that the schema does not know is a mistake. Without it: yes. */
  unknownKeys?: UnknownKeys;
  /** Redacts every value of the file in messages. */
  secret?: boolean;
}

export interface YamlFile<T> {
  value: T;
  warnings: readonly string[];
  /** `tokens.yaml:12`: the line of `path`, for checks outside the schema. */
  at(...path: PropertyKey[]): string;
}

/**
 * The value of a YAML file, checked by a zod schema. Mistakes are reported in a UsageError, one
 * line each: `tokens.yaml:12: tokens[0].principal must be text, not 5`.
 */
export function parseYamlFile<S extends z.ZodType>(
  file: string,
  schema: S,
  options: YamlOptions = {},
): z.output<S> {
  return readYamlFile(file, schema, options).value;
}

/** As `parseYamlFile`, for callers that need warnings or places too. */
export function readYamlFile<S extends z.ZodType>(
  file: string,
  schema: S,
  options: YamlOptions = {},
): YamlFile<z.output<S>> {
  const text = readTextFile(file);
  if (text === undefined) throw new UsageError(`${file}: no such file`);
  return parseYamlText(file, text, schema, options);
}

/** As `readYamlFile`, for a text that did not come from a file; `name` stands in messages. */
export function parseYamlText<S extends z.ZodType>(
  name: string,
  text: string,
  schema: S,
  options: YamlOptions = {},
): YamlFile<z.output<S>> {
  const secret = options.secret ?? false;
  const tree = readYamlTree({ name, text, secret });
  // An empty file is an empty map, so that missing keys are reported.
  const value = tree ? valueOf(tree) : {};
  const line = (problem: Problem) =>
    `${placeOf(name, tree, problem.path)}: ${problem.say(pathText(problem.path))}`;

  const unknown = unknownKeys(schema, value);
  const checked = schema.safeParse(value, parsedOnce);
  const problems = checked.success
    ? []
    : problemsOf(checked.error.issues, { schema, value, secret });
  const remaining = problems.filter((problem) => !isAmong(problem, unknown));
  const refused = options.unknownKeys === 'warn' ? remaining : [...unknown, ...remaining];
  if (refused.length > 0 || !checked.success) throw mistakes(refused.map(line));
  return {
    value: checked.data,
    warnings: options.unknownKeys === 'warn' ? unknown.map(line) : [],
    at: (...path) => placeOf(name, tree, path),
  };
}

// A strict zod object reports the same key again.
function isAmong(problem: Problem, others: readonly Problem[]): boolean {
  return others.some(({ path }) => pathText(path) === pathText(problem.path));
}

/** `tokens.yaml:12`; without a line for what is not in the file. */
function placeOf(name: string, tree: YamlNode | undefined, path: readonly PropertyKey[]): string {
  if (!tree) return name;
  const at = positionOf(tree, path);
  const isRoot = at === tree.at && path.length > 0 && tree.kind === 'map';
  return isRoot ? name : `${name}:${at.line}`;
}

const maxMistakes = 20;

/** One error for all mistakes of a file, one per line. */
export function mistakes(lines: readonly string[]): UsageError {
  const shown = lines.slice(0, maxMistakes);
  if (lines.length > maxMistakes) shown.push(`and ${lines.length - maxMistakes} more mistakes`);
  return new UsageError(shown.join('\n'));
}
