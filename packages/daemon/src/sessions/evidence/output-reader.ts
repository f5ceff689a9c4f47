import { stripVTControlCharacters } from 'node:util';
import { signalIn } from '../../think/signals.js';
import type { Exit, OutputFormat } from '../../core/session.js';
import { readEvent, type AgentEvent } from './agent-events.js';
import type { OutputLog } from '../drivers/session-files.js';
import { isFurniture, promptLineIn } from './pane-markers.js';

const pieceBytes = 1_048_576;
const maxLines = 30;
/** Limit reports of claude and codex. */
const limitReport = /"rate_limit_event"|"rateLimitReachedType"\s*:\s*"/;

/** gemini's message when it refuses to run in an untrusted folder. */
const trustRefusal = /\bnot running in a trusted directory\b/i;

function trustFailure(cli: string): string {
  return (
    `${cli} does not trust this folder. Add ${cli} to \`agents.trust_workspace\` in the daemon's ` +
    `config, or run ${cli} there once and trust the folder.`
  );
}

/** Reads the output of an agent as it grows, and keeps the relevant parts. */
export class OutputReader {
  #at: number;
  #rest = '';
  #words: string[] = [];
  readonly seen: AgentEvent = {};

  constructor(
    private readonly log: OutputLog,
    private readonly format: OutputFormat,
    start: number,
  ) {
    this.#at = start;
  }

  /** Reads new output; true when there was some. */
  listen({ isOver }: { isOver: boolean }): boolean {
    let isNews = false;
    for (;;) {
      const { from, bytes } = this.log.read(this.#at, pieceBytes);
      if (bytes.length === 0) break;
      isNews = true;
      this.#at = from + bytes.length;
      const lines = (this.#rest + bytes.toString('utf8')).split('\n');
      this.#rest = lines.pop()!.slice(-pieceBytes);
      for (const line of lines) this.#take(line);
    }
    if (isOver && this.#rest !== '') {
      this.#take(this.#rest);
      this.#rest = '';
    }
    return isNews;
  }

  #take(line: string): void {
    const event = this.format === 'text' ? undefined : readEvent(this.format, line.trim());
    if (!event) return this.#remember(line);
    const news = Object.entries(event).filter(([, value]) => value !== undefined);
    Object.assign(this.seen, Object.fromEntries(news));
    if (limitReport.test(line)) this.#remember(rateLimitIn(line));
    if (event.result?.isError) this.#remember(event.result.text);
  }

  #remember(line: string): void {
    const text = stripVTControlCharacters(line).replaceAll('\r', '').trimEnd();
    // Lines with drawing characters only are ignored.
    if (!/[\p{L}\p{N}]/u.test(text)) return;
    this.#words = [...this.#words, ...text.split('\n')].slice(-maxLines);
  }

  /** The outcome of the run. */
  verdict(
    cli: string,
    end: { code: number | null; signal: string | null; screen?: string | undefined },
    { now, limitRetryMs }: { now: number; limitRetryMs: number },
  ): Pick<Exit, 'limit' | 'failure'> {
    const { result } = this.seen;
    const succeeded = end.code === 0 && !result?.isError;
    // A run with events has answered, even if none of its lines is plain text.
    const said = this.#words.join('\n');
    const stdout = succeeded && said === '' ? 'done' : said;
    const found = signalIn({ id: cli, succeeded, stdout, stderr: '' }, now);
    if (found && found.kind !== 'unauthenticated') {
      const until = Math.max(now + limitRetryMs, found.resetAt ?? 0);
      return { limit: { reason: found.reason, until }, failure: null };
    }
    if (succeeded) return { limit: null, failure: null };
    if (found) return { limit: null, failure: `it is not logged in: ${found.reason}` };
    const trust = this.#words.find((line) => trustRefusal.test(line));
    if (trust !== undefined) return { limit: null, failure: trustFailure(cli) };
    const own = result?.isError ? failureIn(result.text.split('\n').slice(0, 1)) : undefined;
    const shown =
      end.screen === undefined ? undefined : failureOnScreen(cli, end.screen.split('\n'));
    return { limit: null, failure: own ?? shown ?? failureIn(this.#words) ?? null };
  }
}

/** The report in the format of the signal table. */
function rateLimitIn(line: string): string {
  return /\{[^{}]*"rateLimitType"[^{}]*\}/.exec(line)?.[0] ?? line;
}

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
