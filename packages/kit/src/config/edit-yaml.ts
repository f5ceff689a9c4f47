import type { Document } from 'yaml';
import { UsageError } from '../base/errors.js';
import { yaml } from './yaml-file.js';

export interface YamlChange {
  path: readonly string[];
  /** `undefined` removes the key. */
  value: unknown;
}

/** The text with some values changed; comments and order stay. */
export function editYaml(text: string, changes: readonly YamlChange[]): string {
  const document = yaml().parseDocument(text);
  for (const { path, value } of changes) {
    const there = writtenPath(document, path);
    if (value !== undefined) put(document, there ?? path, value);
    else if (there) document.deleteIn(there);
  }
  return document.toString();
}

/** A key may be written with dots: `tokens.warn: 300k`. Undefined when it is not in the file. */
function writtenPath(document: Document, path: readonly string[]): string[] | undefined {
  return spellings(path).find((spelling) => document.hasIn(spelling));
}

function spellings([first, ...rest]: readonly string[]): string[][] {
  if (first === undefined) return [];
  if (rest.length === 0) return [[first]];
  return spellings(rest).flatMap(([next, ...others]) => [
    [first, next!, ...others],
    [`${first}.${next!}`, ...others],
  ]);
}

function put(document: Document, path: readonly string[], value: unknown): void {
  const { isCollection, isScalar } = yaml();
  for (let depth = 1; depth < path.length; depth++) {
    const parent = path.slice(0, depth);
    const node = document.getIn(parent, true);
    if (node === undefined || isCollection(node)) continue;
    // `tokens:` without anything below is null.
    if (!isScalar(node) || node.value !== null) {
      throw new UsageError(`${parent.join('.')} is not a plain map in the file: edit it by hand`);
    }
    document.deleteIn(parent);
  }
  document.setIn(path, value);
}
