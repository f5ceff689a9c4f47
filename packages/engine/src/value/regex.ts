import { createRequire } from 'node:module';
import type * as Re2 from 're2js';
import { messageOf } from '@millrace/kit/errors';

const maxPatternLength = 1000;
const maxCached = 256;
const cache = new Map<string, Re2.RE2JS>();

const require = createRequire(import.meta.url);
let library: typeof Re2 | undefined;

/** Loaded on demand: it is 6 % of the start-up time of a server, and patterns are rare. */
function re2(): typeof Re2 {
  library ??= require('re2js') as typeof Re2;
  return library;
}

/** Converts a pattern in JavaScript syntax, as in JSON Schema, to RE2 syntax. */
export function fromRegExpSyntax(pattern: string): string {
  return re2().RE2JS.translateRegExp(pattern);
}

/**
 * Compiles a pattern in RE2 syntax, unanchored. RE2 runs in linear time for every pattern; it
 * rejects those it cannot run so (backreferences, look-around).
 */
export function compileRegex(
  pattern: string,
  fail: (problem: string) => Error,
): (text: string) => boolean {
  if (pattern.length > maxPatternLength) {
    throw fail(`is longer than ${maxPatternLength} characters`);
  }
  const known = cache.get(pattern);
  const regex = known ?? compile(pattern, fail);
  // Evicts the least recently used one.
  cache.delete(pattern);
  cache.set(pattern, regex);
  if (cache.size > maxCached) cache.delete(cache.keys().next().value!);
  return (text) => regex.test(text);
}

function compile(pattern: string, fail: (problem: string) => Error): Re2.RE2JS {
  try {
    return re2().RE2JS.compile(pattern);
  } catch (error) {
    throw fail(`is not RE2 syntax: ${explain(error, pattern)}`);
  }
}

function explain(error: unknown, pattern: string): string {
  if (!(error instanceof re2().RE2JSSyntaxException)) return messageOf(error);
  const part = error.getPattern();
  if (!part) return error.getDescription();
  const at = pattern.indexOf(part);
  return `${error.getDescription()}: ${part}${at < 0 ? '' : ` (at character ${at + 1})`}`;
}
