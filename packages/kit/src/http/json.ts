import { isUtf8 } from 'node:buffer';
import { parse as parseSecurely } from 'secure-json-parse';
import { messageOf } from '../errors.js';

// Megabytes of brackets hold up the parser for seconds, and no message of ours is this deep.
export const maxJsonDepth = 128;
const [quote, backslash] = [0x22, 0x5c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** JSON text that is UTF-8, not too deep and without `__proto__`; throws what is wrong with it. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Error('the bytes are not UTF-8');
  if (isTooDeepJson(bytes)) throw new Error(`it is nested more than ${maxJsonDepth} levels deep`);
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  try {
    return parseSecurely(text);
  } catch {
    // Its message hides the place of a syntax error: plain JSON.parse finds the same one again.
    JSON.parse(text);
    throw new Error('it has a key named "__proto__" or "constructor.prototype"');
  }
}

/** The reason of a JSON error, without the piece of the text that JSON.parse repeats. */
export function jsonErrorReason(error: unknown): string {
  return messageOf(error).replace(/, (?:\.\.\.)?"[^]*" ?(?:\.\.\. )?is not valid JSON$/, '');
}

/** True when brackets are nested deeper than any body may be. Text that is no JSON may pass. */
export function isTooDeepJson(bytes: Buffer): boolean {
  // So few bytes cannot have so many brackets.
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

/** Where the string that goes on at `start` has its closing quote. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(quote, start); at !== -1; at = bytes.indexOf(quote, at + 1)) {
    let slashes = 0;
    while (at - slashes > start && bytes[at - slashes - 1] === backslash) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return bytes.length;
}
