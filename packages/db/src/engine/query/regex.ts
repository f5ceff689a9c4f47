import { RE2JS, RE2JSSyntaxException } from 're2js';
import { messageOf } from '@millrace/kit/errors';

const maxPatternLength = 1000;
const maxCached = 256;
const cache = new Map<string, RE2JS>();

/**
 * A test for RE2 syntax, unanchored. RE2 runs in time linear in the text whatever the pattern;
 * what it cannot run so (backreferences, look-around) it does not accept.
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
  // The least recently used one goes first.
  cache.delete(pattern);
  cache.set(pattern, regex);
  if (cache.size > maxCached) cache.delete(cache.keys().next().value!);
  return (text) => regex.test(text);
}

function compile(pattern: string, fail: (problem: string) => Error): RE2JS {
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    throw fail(`is not RE2 syntax: ${explain(error, pattern)}`);
  }
}

function explain(error: unknown, pattern: string): string {
  if (!(error instanceof RE2JSSyntaxException)) return messageOf(error);
  const part = error.getPattern();
  if (!part) return error.getDescription();
  const at = pattern.indexOf(part);
  return `${error.getDescription()}: ${part}${at < 0 ? '' : ` (at character ${at + 1})`}`;
}
