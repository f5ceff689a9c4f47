import { stringify } from 'yaml';
import { UsageError } from '@millrace/kit/errors';
import { csvOf } from './csv.js';

/** Turns what a command writes as JSON into another format. */
export interface Converter {
  /** The text for the documents that are complete; the rest waits for more. */
  push(text: string): string;
  /** What is left at the end, unchanged if it is no JSON. */
  end(): string;
}

export function converterTo(format: 'yaml' | 'csv' | 'name'): Converter {
  const converters = { yaml: yamlConverter, csv: () => csvConverter, name: () => namesOf };
  const convert = converters[format]();
  let rest = '';
  return {
    push(text) {
      rest += text;
      const whole = parsed(rest);
      if (whole) {
        rest = '';
        return convert(whole.value);
      }
      // One document per line, of commands that print as they go.
      const lines = rest.split('\n');
      const documents = lines.slice(0, -1).map(parsed);
      if (!documents.every((each) => each !== undefined)) return '';
      rest = lines.at(-1)!;
      return documents.map(({ value }) => convert(value)).join('');
    },
    end() {
      const left = rest;
      rest = '';
      return left.trim() === '' ? '' : left;
    },
  };
}

function parsed(text: string): { value: unknown } | undefined {
  if (text.trim() === '') return undefined;
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** Several documents are separated as YAML has it. */
function yamlConverter(): (value: unknown) => string {
  let isFirst = true;
  return (value) => {
    const separator = isFirst ? '' : '---\n';
    isFirst = false;
    return `${separator}${stringify(value)}`;
  };
}

/** The rows of a list, or of a single thing. */
function csvConverter(value: unknown): string {
  const items = itemsOf(value);
  const isTable = Array.isArray(value) || items.length !== 1 || items[0] !== value;
  if (isTable || !hasLists(value)) return csvOf(items);
  throw new UsageError(
    '-o csv works with one list. This has several: name one (see --help), or use -o json.',
  );
}

function hasLists(value: unknown): boolean {
  return Object.values(value ?? {}).some((each) => Array.isArray(each));
}

/** One name per line: what other commands take to find the thing again. */
function namesOf(value: unknown): string {
  const items = itemsOf(value);
  const names = items.map(nameOf);
  if (names.includes(undefined)) {
    throw new UsageError(
      '-o name works with lists and with single things that have a name or id. Figures have ' +
        'none: use -o json or -o yaml.',
    );
  }
  return names.map((name) => `${name}\n`).join('');
}

type Fields = Readonly<Record<string, unknown>>;

function itemsOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  if (nameOf(value) !== undefined) return [value];
  const members = Object.values(value ?? {});
  const lists = members.filter((each) => Array.isArray(each));
  if (lists.length === 1) return lists[0]!;
  // One thing under its kind: `{"job": {"id": ...}}`.
  return members.length === 1 ? members : [value];
}

/** Fields by which other commands find a thing, in order. */
const identifying = [
  'id',
  'name',
  'key',
  'worker',
  'sample_id',
  'collection',
  'node_id',
  'service',
  'seq',
  'url',
];

function nameOf(item: unknown): string | undefined {
  if (typeof item === 'string') return item;
  if (typeof item !== 'object' || item === null) return undefined;
  const names = identifying.map((field) => (item as Fields)[field]);
  return names
    .filter((each) => typeof each === 'string' || typeof each === 'number')
    .map(String)
    .find((each) => each !== '');
}
