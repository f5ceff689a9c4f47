import { suggestion } from './nearest.js';
import { shapeOf, type Schema } from './schema.js';
import type { ConfigDefinition } from './define.js';
import type { YamlEntry, YamlMap, YamlNode } from './yaml-tree.js';

export interface FileSettings {
  found: ReadonlyMap<string, FoundSetting>;
  mistakes: string[];
  unknown: string[];
}

export interface FoundSetting {
  entry: YamlEntry;
  node: YamlNode;
}

/**
 * Finds the settings of a file. `tokens.warn: 300k` and `tokens: {warn: 300k}` are the same; setting
 * both is a mistake.
 */
export function findSettings(file: string, root: YamlMap, definition: ConfigDefinition) {
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
