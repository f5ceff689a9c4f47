import { pathText } from './problems.js';
import { positionOf, type Position, type YamlNode } from './yaml-tree.js';

/** Where a setting's value came from. */
export type Source =
  | { kind: 'flag'; flag: string }
  | { kind: 'environment'; variable: string }
  | ({ kind: 'file'; file: string } & Position)
  | { kind: 'default' };

/** `--listen`, `$MILLRACE_LISTEN`, `queue.yaml:12` or `default`. */
export function sourceText(source: Source): string {
  if (source.kind === 'flag') return `--${source.flag}`;
  if (source.kind === 'environment') return `$${source.variable}`;
  return source.kind === 'file' ? `${source.file}:${source.line}` : 'default';
}

/** A value that somebody set, before it is checked. */
export interface Given {
  value: unknown;
  source: Source;
  /** The setting's piece of the file, to find the line of what is inside it. */
  node?: YamlNode;
}

/** Begins a message about `inner` of a setting: what it is called where it was set, and where. */
export function about(
  key: string,
  given: Given | undefined,
  inner: readonly PropertyKey[],
): { place: string; name: string } {
  const source: Source = given?.source ?? { kind: 'default' };
  if (source.kind === 'file') {
    const line = given?.node && inner.length > 0 ? positionOf(given.node, inner).line : source.line;
    return { place: `${source.file}:${line}: `, name: pathText([key, ...inner]) };
  }
  const name = source.kind === 'default' ? key : sourceText(source);
  return { place: '', name: pathText([name, ...inner]) };
}
