import { isFurniture, promptLineIn } from './pane-markers.js';

/**
 * Finds the error message of a failed agent. Lines that its screen always shows, and what a runtime
 * prints around an error, are below the message and are ignored.
 */

/** How many lines from the end are searched. */
const lastTelling = 8;
const maxWordsLength = 300;

/** Stack frames and version lines of runtimes. */
const runtimeChatter =
  /^\s+at \S|^\s*File ".*", line \d|^Node\.js v\d|^note: run with .RUST_BACKTRACE|^\s*\d+: 0x[\da-f]|^Pane is dead\b|^goroutine \d+ \[/i;

/** Start of a line that reports an error. */
const errorHead =
  /^\W*(?:(?:api|fatal|internal|uncaught|unhandled)\s+)*(?:[\w.$]*(?:error|exception)(?=\s*[:[(]|\s+\d|\s{2}|\s*$)|(?:fatal|panic)\b|failed to\b|cannot\b|could not\b|unable to\b|(?:aborted|killed|segmentation fault|out of memory)\b|thread '.*' panicked\b)/i;
const systemError = /\bE(?:ACCES|CONN[A-Z]+|MFILE|NOENT|NOMEM|NOSPC|PERM|PIPE|TIMEDOUT)\b/;

/** Fields of a line of state, such as people have drawn below their prompt. */
const stateFields = /[|│·•]|\d%|\$\d/;

/** The most informative error lines of an output; undefined when there are none. */
export function failureIn(lines: readonly string[]): string | undefined {
  const telling = lines.filter(isTelling).slice(-lastTelling);
  return wordsOf(telling, errorIn(telling) ?? telling.length - 1);
}

/**
 * The same for a screen. A program that exits prints its error below its last frame, or has redrawn
 * its prompt below the error.
 */
export function failureOnScreen(cli: string, lines: readonly string[]): string | undefined {
  const prompt = promptLineIn(cli, lines);
  const said = (part: readonly string[]) =>
    part.filter((line) => isTelling(line) && !isFurniture(cli, line)).slice(-lastTelling);
  const below = said(lines.slice(prompt + 1));
  const above = said(lines.slice(0, prompt + 1));
  const [lower, upper] = [errorIn(below), errorIn(above)];
  if (lower !== undefined) return wordsOf(below, lower);
  if (upper !== undefined) return wordsOf(above, upper);
  const plain = prompt === -1 ? below : below.filter((line) => !stateFields.test(line));
  return wordsOf(plain, plain.length - 1) ?? wordsOf(above, above.length - 1);
}

function isTelling(line: string): boolean {
  // Lines with drawing characters only are ignored.
  return /[\p{L}\p{N}]/u.test(line) && !runtimeChatter.test(line);
}

function errorIn(lines: readonly string[]): number | undefined {
  const at = lines.findLastIndex((line) => errorHead.test(line) || systemError.test(line));
  return at === -1 ? undefined : at;
}

/** The text without decoration, and the next line where this one only introduces it. */
function wordsOf(lines: readonly string[], at: number): string | undefined {
  const [line, next] = [lines[at], lines[at + 1]].map((each) =>
    each?.replaceAll(/^[\s│|●•■⏺✻⎿✕✖✗×⚠>❯›]+|[\s│|]+$/g, ''),
  );
  if (line === undefined) return undefined;
  const words = line.endsWith(':') && next !== undefined ? `${line} ${next}` : line;
  return words.slice(0, maxWordsLength);
}
