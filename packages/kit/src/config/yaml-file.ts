import type * as Yaml from 'yaml';
import { createRequire } from 'node:module';
import type { Document, LineCounter, ParsedNode, YAMLError, YAMLMap } from 'yaml';
import { UsageError, messageOf, systemCode } from '../base/errors.js';
import { hasUserinfo, isSecretName } from '../base/log.js';
import { readFileSync, statSync } from 'node:fs';
import type { z } from 'zod';
import { pathText, problemsOf, unknownKeys, type Problem } from './problems.js';
import { parsedOnce, coreOf, defOf, type Schema } from './schema.js';

const require = createRequire(import.meta.url);

/** Loaded on first use, because it is large and most commands do not need it. */
export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}

/** A position in a file; both count from 1. */
export interface Position {
  line: number;
  column: number;
}

/** A parsed YAML file: plain values with their positions. */
export type YamlNode = YamlScalar | YamlList | YamlMap;

interface YamlScalar {
  kind: 'scalar';
  at: Position;
  value: string | number | boolean | null;
  /** Written without quotes. */
  bare: boolean;
}

interface YamlList {
  kind: 'list';
  at: Position;
  items: YamlNode[];
}

export interface YamlMap {
  kind: 'map';
  at: Position;
  entries: YamlEntry[];
}

export interface YamlEntry {
  key: string;
  at: Position;
  value: YamlNode;
}

interface YamlText {
  /** The file's name as messages show it. */
  name: string;
  text: string;
  /** Omits excerpts of the file from messages. */
  secret?: boolean;
}

// A few nested aliases can expand to billions of values.
const maxAliasedNodes = 10_000;
const maxDepth = 100;

/** Reads one YAML document. `undefined` for an empty one; a UsageError names line and column. */
export function readYamlTree(source: YamlText): YamlNode | undefined {
  const text = source.text.replace(/^\uFEFF/, '');
  const clean = { ...source, text };
  const lines = new (yaml().LineCounter)();
  let document: Document.Parsed;
  try {
    document = yaml().parseDocument(text, { lineCounter: lines, prettyErrors: false });
  } catch (error) {
    // The parser is recursive and has no depth limit.
    if (!(error instanceof RangeError)) throw error;
    throw new UsageError(`${source.name}: not valid YAML: it is nested too deep`);
  }
  const mistake = document.errors[0] ?? document.warnings[0];
  if (mistake) throw yamlError(clean, lines, mistake);
  if (!document.contents) return undefined;
  const tree = new TreeReader(clean, lines).read(document.contents, 0);
  return tree.kind === 'scalar' && tree.value === null ? undefined : tree;
}

class TreeReader {
  readonly #anchors = new Map<string, ParsedNode>();
  #aliasDepth = 0;
  #aliasedNodes = 0;

  constructor(
    private readonly source: YamlText,
    private readonly lines: LineCounter,
  ) {}

  read(node: ParsedNode, depth: number): YamlNode {
    const at = this.#position(node.range[0]);
    if (depth > maxDepth) throw problemAt(this.source, at, 'it is nested too deep');
    if (this.#aliasDepth > 0 && ++this.#aliasedNodes > maxAliasedNodes) {
      throw problemAt(this.source, at, `aliases expand to more than ${maxAliasedNodes} values`);
    }
    if (yaml().isAlias(node)) return this.#readAlias(node.source, at, depth);
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    if (yaml().isScalar(node)) return this.#readScalar(node, at);
    if (yaml().isSeq(node)) {
      const items = node.items.map((item) => this.read(item, depth + 1));
      return { kind: 'list', at, items };
    }
    return { kind: 'map', at, entries: this.#readEntries(node, depth) };
  }

  #readEntries(map: YAMLMap.Parsed, depth: number): YamlEntry[] {
    return map.items.map((pair) => {
      const at = this.#position(pair.key.range[0]);
      if (!yaml().isScalar(pair.key) || pair.key.value === null) {
        throw problemAt(this.source, at, 'a key must be a word');
      }
      const key = pair.key.source ?? JSON.stringify(pair.key.value);
      // Assigning this name to an object changes what the object is.
      if (key === '__proto__') throw problemAt(this.source, at, '__proto__ cannot be a key');
      const value: YamlNode = pair.value
        ? this.read(pair.value, depth + 1)
        : { kind: 'scalar', at, value: null, bare: true };
      return { key, at, value };
    });
  }

  #readScalar(node: { value: unknown; type?: string }, at: Position): YamlScalar {
    const { value } = node;
    const known = value === null || ['string', 'number', 'boolean'].includes(typeof value);
    if (!known) throw problemAt(this.source, at, 'a value must be text, a number, true or false');
    return {
      kind: 'scalar',
      at,
      value: value as YamlScalar['value'],
      bare: node.type === 'PLAIN',
    };
  }

  #readAlias(name: string, at: Position, depth: number): YamlNode {
    const target = this.#anchors.get(name);
    if (!target) throw problemAt(this.source, at, `no anchor &${name} comes before this alias`);
    this.#aliasDepth++;
    const copy = this.read(target, depth + 1);
    this.#aliasDepth--;
    // Messages should point to where the alias is used.
    return yaml().isMap(target) || yaml().isSeq(target) ? copy : { ...copy, at };
  }

  #position(offset: number): Position {
    const { line, col } = this.lines.linePos(offset);
    return { line, column: col };
  }
}

function yamlError(source: YamlText, lines: LineCounter, error: YAMLError): UsageError {
  const { line, col } = lines.linePos(error.pos[0]);
  return problemAt(source, { line, column: col }, explain(error));
}

const explanations: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: 'this key is given twice',
  TAB_AS_INDENT: 'indentation must be spaces, not tabs',
  MULTIPLE_DOCS: 'a second document starts here, and only one is read',
};

function explain(error: YAMLError): string {
  return explanations[error.code] ?? lowerFirst(error.message.split('\n')[0]!);
}

function problemAt(source: YamlText, at: Position, what: string): UsageError {
  const where = `${source.name}:${at.line}:${at.column}`;
  return new UsageError(`${where}: not valid YAML: ${what}${excerpt(source, at)}`);
}

const widestExcerpt = 100;

function excerpt(source: YamlText, at: Position): string {
  const line = source.text.split(/\r?\n/)[at.line - 1] ?? '';
  const name = /^[\s-]*["']?([\w.-]+)["']?\s*:/.exec(line)?.[1] ?? '';
  if (source.secret || isSecretName(name) || hasUserinfo(line)) return '';
  if (line.length > widestExcerpt) return '';
  const margin = ' '.repeat(String(at.line).length);
  // A tab is as wide as the terminal likes; one space keeps the caret below its place.
  const shown = line.replaceAll('\t', ' ');
  return `\n  ${at.line} | ${shown}\n  ${margin} | ${' '.repeat(at.column - 1)}^`;
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}

/** The plain value of a tree. */
export function valueOf(node: YamlNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(valueOf);
  return Object.fromEntries(node.entries.map(({ key, value }) => [key, valueOf(value)]));
}

/** The place of `path`, or of the nearest thing around it that is in the file. */
export function positionOf(node: YamlNode, path: readonly PropertyKey[]): Position {
  let current = node;
  let at = node.at;
  for (const step of path) {
    if (current.kind === 'map') {
      const entry = current.entries.find(({ key }) => key === step);
      if (!entry) return at;
      ({ at, value: current } = entry);
    } else if (current.kind === 'list' && typeof step === 'number' && current.items[step]) {
      current = current.items[step];
      at = current.at;
    } else {
      return at;
    }
  }
  return at;
}

const maxFileBytes = 4 * 2 ** 20;

/** The text of a file, or `undefined` when it does not exist. Other errors are UsageErrors. */
export function readTextFile(file: string): string | undefined {
  let bytes: Buffer;
  try {
    const { size } = statSync(file);
    if (size > maxFileBytes) throw new UsageError(`${file}: is larger than 4 MiB`);
    bytes = readFileSync(file);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    if (systemCode(error) === 'ENOENT') return undefined;
    throw new UsageError(`${file}: ${reason(error)}`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UsageError(`${file}: is not UTF-8 text; save it as UTF-8`);
  }
}

function reason(error: unknown): string {
  switch (systemCode(error)) {
    case 'EISDIR':
      return 'is a directory, not a file';
    case 'ENOTDIR':
      return 'a part of this path is not a directory';
    case 'EACCES':
    case 'EPERM':
      return `cannot be read by uid ${process.getuid?.() ?? '?'}: permission denied`;
    default:
      return `cannot be read: ${messageOf(error)}`;
  }
}

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

const words: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  on: true,
  '1': true,
  false: false,
  no: false,
  off: false,
  '0': false,
};

/** `on`, `off`, `yes` and the like; `undefined` for any other word. */
export function switchOf(text: string): boolean | undefined {
  return Object.hasOwn(words, text.toLowerCase()) ? words[text.toLowerCase()] : undefined;
}

/**
 * Converts the text of a flag or a variable to the type of a setting. Text that does not match is
 * returned unchanged, and the schema rejects it.
 */
export function valueOfText(schema: Schema, text: string): unknown {
  const def = defOf(coreOf(schema));
  if (def.type === 'boolean') return switchOf(text) ?? text;
  if (def.type === 'number') return numberOf(text) ?? text;
  if (def.type === 'union') return valueOfUnion(def.options, text);
  if (def.type === 'array' && !text.startsWith('[')) return splitList(def.element, text);
  return ['array', 'object', 'record', 'tuple'].includes(def.type) ? flowValue(text) : text;
}

/** A flag that was given several times. */
export function valueOfTexts(schema: Schema, texts: readonly string[]): unknown {
  const def = defOf(coreOf(schema));
  if (def.type !== 'array') return valueOfText(schema, texts.at(-1)!);
  return texts.flatMap((text) => valueOfText(schema, text));
}

function numberOf(text: string): number | undefined {
  return /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined;
}

function valueOfUnion(options: readonly Schema[], text: string): unknown {
  const types = new Set(options.map((option) => defOf(coreOf(option)).type));
  const flow = types.has('object') || types.has('array') || types.has('record');
  if (flow && /^[[{]/.test(text)) return flowValue(text);
  const list = options.find((option) => defOf(coreOf(option)).type === 'array');
  if (list && !types.has('string')) return valueOfText(list, text);
  if (types.has('number')) return numberOf(text) ?? text;
  if (types.has('boolean') && /^(true|false)$/.test(text)) return text === 'true';
  return text;
}

// `a, b` is two items when items are scalars; an item that is a map contains commas.
function splitList(element: Schema, text: string): unknown[] {
  if (text.startsWith('{')) return [flowValue(text)];
  if (text === '') return [];
  return text.split(',').map((item) => valueOfText(element, item.trim()));
}

function flowValue(text: string): unknown {
  try {
    return yaml().parse(text, { maxAliasCount: 0 }) as unknown;
  } catch {
    return text;
  }
}
