import type { Document, LineCounter, ParsedNode, YAMLError, YAMLMap } from 'yaml';
import { UsageError } from '../base/errors.js';
import { hasUserinfo, isSecretName } from '../base/secrecy.js';
import { yaml } from './yaml-library.js';

/** A position in a file; both count from 1. */
export interface Position {
  line: number;
  column: number;
}

/** A parsed YAML file: plain values with their positions. */
export type YamlNode = YamlScalar | YamlList | YamlMap;

export interface YamlScalar {
  kind: 'scalar';
  at: Position;
  value: string | number | boolean | null;
  /** Written without quotes. */
  bare: boolean;
}

export interface YamlList {
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

export interface YamlText {
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
