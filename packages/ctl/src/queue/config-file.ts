import { text as textOf } from 'node:stream/consumers';
import { messageOf, UsageError } from '@millrace/kit/errors';
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml';
import type { Terminal } from '../base/terminal.js';
import { bytesOf } from '../base/arguments.js';

export interface ConfigFile {
  /** Its name in errors. */
  readonly name: string;
  readonly config: Record<string, unknown>;
  /** Line of the value at a JSON pointer, or of the object it is missing from. */
  lineOf(pointer: string): number;
}

/** Parses a config as YAML, which includes JSON. */
export async function readConfigFile(
  file: string,
  terminal: Terminal,
  needs?: string,
): Promise<ConfigFile> {
  const name = file === '-' ? 'stdin' : file;
  return parseConfigText(await textOf(bytesOf(file, terminal)), name, needs);
}

/** `needs`: the minimum content, for errors. */
export function parseConfigText(
  text: string,
  name: string,
  needs = 'callback: {url: https://...}',
): ConfigFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [fault] = document.errors;
  if (fault) {
    const { line } = lines.linePos(fault.pos[0]);
    throw new UsageError(`${name}:${line}: ${fault.message.split('\n')[0]}.`);
  }
  const config: unknown = plainOf(document, name);
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    const what = config === null ? 'is empty' : 'is not a map of settings';
    throw new UsageError(`${name} ${what}. It needs at least ${needs}.`);
  }
  return {
    name,
    config: config as Record<string, unknown>,
    lineOf: (pointer) => lines.linePos(offsetOf(document, pointer)).line,
  };
}

function plainOf(document: Document, name: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 }) as unknown;
  } catch (error) {
    throw new UsageError(`${name}: ${messageOf(error)}.`, { cause: error });
  }
}

/** Follows the pointer as far as it exists: an unknown key exists, a missing one does not. */
function offsetOf(document: Document, pointer: string): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const step of pointer.split('/').slice(1).map(unescaped)) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
      if (!pair) break;
      offset = (pair.key as { range?: number[] }).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      offset = (node as { range?: number[] } | undefined)?.range?.[0] ?? offset;
    } else break;
  }
  return offset;
}

function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}
