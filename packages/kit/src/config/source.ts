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

/** A value that was set, before validation. */
export interface Given {
  value: unknown;
  source: Source;
  /** The YAML node of the setting, to find the lines of its members. */
  node?: YamlNode;
}

/** The place and name of `inner` of a setting, to start a message. */
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
