import { stripVTControlCharacters } from 'node:util';
import { signalIn } from '../think/signals.js';
import type { Exit } from '../core/session.js';
import { readEvent, type AgentEvent } from './agent-events.js';
import type { OutputFormat } from './command-lines.js';
import { failureIn, failureOnScreen } from './failure-words.js';
import type { OutputLog } from './output-log.js';

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
