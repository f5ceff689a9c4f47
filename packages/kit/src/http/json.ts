import { isUtf8 } from 'node:buffer';
import { parse as parseSecurely } from 'secure-json-parse';
import { messageOf } from '../base/errors.js';

// Megabytes of brackets block the parser for seconds, and no valid body is this deep.
export const maxJsonDepth = 128;
const [quote, backslash] = [0x22, 0x5c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Parses JSON that is UTF-8, not nested too deep and without `__proto__`. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Error('the bytes are not UTF-8');
  if (isTooDeepJson(bytes)) throw new Error(`it is nested more than ${maxJsonDepth} levels deep`);
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  try {
    return parseSecurely(text);
  } catch {
    // JSON.parse throws the syntax error again, with its position.
    JSON.parse(text);
    throw new Error('it has a key named "__proto__" or "constructor.prototype"');
  }
}

/** Returns parsed data; throws when a text has a lone surrogate, which only escapes can produce. */
export function wellFormed<T>(value: T): T {
  const isMalformed = (each: unknown): boolean => {
    if (typeof each === 'string') return !each.isWellFormed();
    if (typeof each !== 'object' || each === null) return false;
    return Object.keys(each).some(isMalformed) || Object.values(each).some(isMalformed);
  };
  if (isMalformed(value)) throw new Error('a text has a lone surrogate, which is not Unicode');
  return value;
}

/** The reason of a JSON error, without the excerpt of the text. */
export function jsonErrorReason(error: unknown): string {
  return messageOf(error).replace(/, (?:\.\.\.)?"[^]*" ?(?:\.\.\. )?is not valid JSON$/, '');
}

/** True when brackets are nested deeper than `maxJsonDepth`. Does not validate the JSON. */
export function isTooDeepJson(bytes: Buffer): boolean {
  // Too short to be nested that deep.
  if (bytes.length <= maxJsonDepth) return false;
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === quote) i = endOfString(bytes, i + 1);
    else if (byte === openList || byte === openObject) depth++;
    else if (byte === closeList || byte === closeObject) depth--;
    if (depth > maxJsonDepth) return true;
  }
  return false;
}

/** The offset of the closing quote of a string. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(quote, start); at !== -1; at = bytes.indexOf(quote, at + 1)) {
    let slashes = 0;
    while (at - slashes > start && bytes[at - slashes - 1] === backslash) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return bytes.length;
}
