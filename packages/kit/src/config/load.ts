import { suggestion, nearest } from './nearest.js';
import {
  shapeOf,
  type Schema,
  coreOf,
  defaultOf,
  defOf,
  isOptional,
  parsedOnce,
} from './schema.js';
import {
  type ConfigDefinition,
  variablePrefix,
  type NamedSetting,
  entryOf,
  type ConfigEntry,
  absolutePaths,
  homeOf,
  about,
  type Given,
  type Source,
} from './define.js';
import {
  type YamlEntry,
  type YamlMap,
  type YamlNode,
  readTextFile,
  switchOf,
  valueOfText,
  valueOfTexts,
  mistakes,
  readYamlTree,
  valueOf,
} from './yaml-file.js';
import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import { UsageError } from '../base/errors.js';
import { problemsOf, unknownKeys, type Problem } from './problems.js';

interface FileSettings {
  found: ReadonlyMap<string, FoundSetting>;
  mistakes: string[];
  unknown: string[];
}

interface FoundSetting {
  entry: YamlEntry;
  node: YamlNode;
}

/**
 * Finds the settings of a file. `tokens.warn: 300k` and `tokens: {warn: 300k}` are the same; setting
 * both is a mistake.
 */
function findSettings(file: string, root: YamlMap, definition: ConfigDefinition) {
  const search = new Search(file, definition);
  search.group(root, definition.schema, []);
  return search.result;
}

class Search {
  readonly #found = new Map<string, FoundSetting>();
  readonly result: FileSettings = { found: this.#found, mistakes: [], unknown: [] };

  constructor(
    private readonly file: string,
    private readonly definition: ConfigDefinition,
  ) {}

  group(map: YamlMap, schema: Schema, path: readonly string[]): void {
    for (const entry of map.entries) this.#entry(entry, schema, path);
  }

  #entry(entry: YamlEntry, schema: Schema, path: readonly string[]): void {
    const words = entry.key.split('.');
    let group = schema;
    for (const [index, word] of words.entries()) {
      const here = [...path, ...words.slice(0, index + 1)];
      const shape = shapeOf(group)!;
      const member = Object.hasOwn(shape, word) ? shape[word]! : undefined;
      if (!member) return this.#unknown(entry, [...path, ...words]);
      const isGroup = shapeOf(member) !== undefined;
      if (index === words.length - 1) {
        return isGroup ? this.#members(entry, member, here) : this.#setting(entry, here.join('.'));
      }
      if (!isGroup) {
        const rest = words.slice(index + 1).join('.');
        return this.#mistake(entry, `${here.join('.')} is not a group: write ${rest} below it`);
      }
      group = member;
    }
  }

  #members(entry: YamlEntry, schema: Schema, path: readonly string[]): void {
    const { value } = entry;
    if (value.kind === 'map') return this.group(value, schema, path);
    // `limits:` with every line below it commented out.
    if (value.kind === 'scalar' && value.value === null) return;
    this.#mistake(entry, `${path.join('.')} must be a group of settings, not a single value`);
  }

  #setting(entry: YamlEntry, key: string): void {
    const before = this.#found.get(key);
    if (before) {
      const line = before.entry.at.line;
      return this.#mistake(entry, `${key} is given twice, here and in line ${line}; remove one`);
    }
    this.#found.set(key, { entry, node: entry.value });
  }

  #mistake(entry: YamlEntry, text: string): void {
    this.result.mistakes.push(`${this.file}:${entry.at.line}: ${text}`);
  }

  #unknown(entry: YamlEntry, path: readonly string[]): void {
    const key = path.join('.');
    const keys = this.definition.settings.map((setting) => setting.key);
    const groups = keys.flatMap((known) => prefixes(known));
    // The name is right but the group is missing.
    const elsewhere = keys.find((known) => known.endsWith(`.${path.at(-1)}`));
    const hint =
      suggestion(key, [...keys, ...groups]) || (elsewhere ? `; did you mean "${elsewhere}"?` : '');
    this.result.unknown.push(`${this.file}:${entry.at.line}: unknown key "${key}"${hint}`);
  }
}

/** `a.b.c` -> `a`, `a.b` */
function prefixes(key: string): string[] {
  const words = key.split('.');
  return words.slice(1).map((_, index) => words.slice(0, index + 1).join('.'));
}

export type FlagValue = string | boolean | readonly string[] | undefined;

export interface ConfigInputs {
  /**
   * What the command line gave, by flag (`tokens-file`) or in camel case (`tokensFile`), as
   * parsers have it; names that are no flags are left alone. `config` names the file.
   */
  flags?: Readonly<Record<string, FlagValue>>;
  environment: Readonly<Record<string, string | undefined>>;
  /** Read when there is no `--config`; it may not exist. */
  defaultFile?: string;
  /** Base of relative paths in flags and variables. */
  cwd?: string;
}

export interface LoadedConfig<T> {
  values: T;
  /** The file that was read. */
  file: string | undefined;
  /** Absolute path of the file that is read if it exists. */
  filePath: string | undefined;
  /** Every setting with its value as written and its source; secrets are hidden. */
  entries: readonly ConfigEntry[];
  warnings: readonly string[];
  sourceOf(key: string): Source;
  /** For a check that a schema cannot make: `queue.yaml:3: listen <text>`. */
  mistake(key: string, text: string): UsageError;
  /** Loads again from the same flags and variables, with this text in place of the file. */
  withFileText(text: string): LoadedConfig<T>;
}

/**
 * Reads a server's settings once. A flag beats a variable, a variable beats the file, the file
 * beats the default. All mistakes are reported at once, in one UsageError with a line for each.
 */
export function loadConfig<S extends z.ZodObject>(
  definition: ConfigDefinition<S>,
  inputs: ConfigInputs,
): LoadedConfig<z.output<S>> {
  return new Loader(definition, inputs, undefined).load() as LoadedConfig<z.output<S>>;
}

class Loader {
  readonly #given = new Map<string, Given>();
  readonly #wrong: string[] = [];
  readonly #warnings: string[] = [];
  readonly #cwd: string;
  readonly #home: string;

  constructor(
    private readonly definition: ConfigDefinition,
    private readonly inputs: ConfigInputs,
    /** Replaces the text of the config file. */
    private readonly fileText: string | undefined,
  ) {
    this.#cwd = inputs.cwd ?? process.cwd();
    this.#home = homeOf(inputs.environment);
  }

  load(): LoadedConfig<unknown> {
    const flags = new Map(
      Object.entries(this.inputs.flags ?? {}).map(([name, value]) => [kebabCase(name), value]),
    );
    const file = this.#readFile(flags.get('config'));
    this.#readEnvironment();
    this.#readFlags(flags);
    for (const setting of this.definition.settings) this.#finish(setting);
    const values = this.#check();
    if (this.#wrong.length > 0) throw mistakes(this.#wrong);
    const { settings } = this.definition;
    const named = flags.get('config') ?? this.inputs.defaultFile;
    return {
      values,
      file,
      filePath: typeof named === 'string' ? resolve(this.#cwd, named) : undefined,
      entries: settings.map((setting) => entryOf(setting, this.#given.get(setting.key))),
      warnings: this.#warnings,
      sourceOf: (key) => this.#given.get(key)?.source ?? { kind: 'default' },
      mistake: (key, text) => {
        const { place, name } = about(key, this.#given.get(key), []);
        return new UsageError(`${place}${name} ${text}`);
      },
      withFileText: (text) => new Loader(this.definition, this.inputs, text).load(),
    };
  }

  #readFile(named: FlagValue): string | undefined {
    if (named !== undefined && (typeof named !== 'string' || named === '')) {
      throw new UsageError('--config needs the name of a file');
    }
    const file = named ?? this.inputs.defaultFile;
    if (file === undefined) return undefined;
    const text = this.fileText ?? readTextFile(resolve(this.#cwd, file));
    if (text === undefined) {
      if (named === undefined) return undefined;
      throw new UsageError(`--config ${file}: no such file`);
    }
    const root = readYamlTree({ name: file, text });
    if (root && root.kind !== 'map') {
      const what = root.kind === 'list' ? 'a list' : 'a single value';
      throw new UsageError(`${file}:${root.at.line}: must be a map of settings, not ${what}`);
    }
    if (root) this.#takeFile(file, findSettings(file, root, this.definition));
    return file;
  }

  #takeFile(file: string, { found, mistakes: wrong, unknown }: FileSettings): void {
    this.#wrong.push(...wrong);
    if (this.definition.unknownKeys === 'refuse') this.#wrong.push(...unknown);
    else this.#warnings.push(...unknown);
    for (const setting of this.definition.settings) {
      const setHere = found.get(setting.key);
      if (!setHere) continue;
      const { entry, node } = setHere;
      const source: Source = { kind: 'file', file, ...entry.at };
      this.#given.set(setting.key, { value: fileValue(setting.schema, node), source, node });
    }
  }

  #readEnvironment(): void {
    const { environment } = this.inputs;
    for (const { key, variable, schema } of this.definition.settings) {
      // Compose files and systemd units pass unset variables as empty ones. A Kubernetes Secret
      // made from a file ends with the line break of that file.
      const text = environment[variable]?.replace(/\r?\n$/, '');
      if (!text) continue;
      const source: Source = { kind: 'environment', variable };
      this.#given.set(key, { value: valueOfText(schema, text), source });
    }
    this.#warnings.push(...misspelledVariables(this.definition, environment));
  }

  #readFlags(flags: ReadonlyMap<string, FlagValue>): void {
    for (const { key, flag, schema, notes } of this.definition.settings) {
      const name = [flag, ...(notes.aliases ?? [])].find((each) => flags.get(each) !== undefined);
      if (name === undefined) continue;
      const value = flagValue(schema, flags.get(name)!);
      this.#given.set(key, { value, source: { kind: 'flag', flag: name } });
    }
  }

  // Applied to every value, from any source.
  #finish({ key, schema, notes }: NamedSetting): void {
    const given = this.#given.get(key);
    if (!given) {
      // A relative default is relative to the working directory.
      const standard = notes.path ? defaultOf(schema) : undefined;
      if (typeof standard !== 'string') return;
      const value = absolutePaths(schema, standard, this.#cwd, this.#home);
      this.#given.set(key, { value, source: { kind: 'default' } });
      return;
    }
    if (notes.deprecation !== undefined) {
      const { place, name } = about(key, given, []);
      this.#warnings.push(`${place}${name} is deprecated: ${notes.deprecation}`);
    }
    const { source } = given;
    const base = source.kind === 'file' ? dirname(resolve(this.#cwd, source.file)) : this.#cwd;
    given.value = absolutePaths(schema, given.value, base, this.#home);
  }

  #check(): unknown {
    const { schema, unknownKeys: policy } = this.definition;
    const value = this.#tree(schema, []) ?? {};
    const unknown = unknownKeys(schema, value);
    const target = policy === 'refuse' ? this.#wrong : this.#warnings;
    target.push(...unknown.map((problem) => this.#line(problem)));
    const checked = schema.safeParse(value, parsedOnce);
    if (checked.success) return checked.data;
    // Keys that a strict part of the schema refuses are refused by every policy.
    const isRefused = policy === 'refuse';
    const known = new Set(isRefused ? unknown.map(({ path }) => path.join('\n')) : []);
    const problems = problemsOf(checked.error.issues, { schema, value });
    const fresh = problems.filter(({ path }) => !known.has(path.join('\n')));
    this.#wrong.push(...fresh.map((problem) => this.#line(problem)));
    return undefined;
  }

  /** The settings of a group as zod wants them; an optional group without any is left out. */
  #tree(schema: Schema, path: readonly string[]): Record<string, unknown> | undefined {
    const tree: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(shapeOf(schema)!)) {
      const here = [...path, name];
      const value = shapeOf(member)
        ? this.#tree(member, here)
        : this.#given.get(here.join('.'))?.value;
      if (value !== undefined) tree[name] = value;
    }
    const empty = Object.keys(tree).length === 0;
    return empty && isOptional(schema) ? undefined : tree;
  }

  #line(problem: Problem): string {
    const setting = this.definition.settings.find(({ path }) =>
      path.every((word, index) => problem.path[index] === word),
    );
    if (!setting) return problem.say(problem.path.join('.') || 'the configuration');
    const { key, flag, variable, path } = setting;
    const given = this.#given.get(key);
    const { place, name } = about(key, given, problem.path.slice(path.length));
    const ways = `set it in the file, by --${flag} or by $${variable}`;
    return `${place}${problem.say(name)}${problem.missing && !given ? `; ${ways}` : ''}`;
  }
}

function fileValue(schema: Schema, node: YamlNode): unknown {
  const value = valueOf(node);
  // YAML 1.1 booleans (yes, no, on, off) are still common.
  const isWord = node.kind === 'scalar' && node.bare && typeof value === 'string';
  if (isWord && defOf(coreOf(schema)).type === 'boolean') return switchOf(value) ?? value;
  return value;
}

function flagValue(schema: Schema, given: Exclude<FlagValue, undefined>): unknown {
  if (typeof given === 'string') return valueOfText(schema, given);
  return typeof given === 'boolean' ? given : valueOfTexts(schema, given);
}

const otherComponents = ['queue', 'db'];

// Variables of other programs may share our prefix, so only near misses are reported.
function misspelledVariables(
  { component, settings }: ConfigDefinition,
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  const prefix = variablePrefix(component);
  const others = otherComponents.filter((other) => other !== component).map(variablePrefix);
  const known = new Map(settings.map(({ variable }) => [variable.slice(prefix.length), variable]));
  return Object.keys(environment).flatMap((name) => {
    const rest = name.slice(prefix.length);
    if (!name.startsWith(prefix) || known.has(rest)) return [];
    if (others.some((other) => name.startsWith(other))) return [];
    const meant = nearest(rest, known.keys());
    return meant === undefined ? [] : [`$${name} is not used; did you mean $${known.get(meant)}?`];
  });
}

function kebabCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
