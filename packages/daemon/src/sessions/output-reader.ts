import { stripVTControlCharacters } from 'node:util';
import { signalIn } from '../think/signals.js';
import type { Exit } from '../core/session.js';
import { readEvent, type AgentEvent } from './agent-events.js';
import type { OutputFormat } from './command-lines.js';
import { failureIn, failureOnScreen } from './failure-words.js';
import type { OutputLog } from './output-log.js';

const pieceBytes = 1_048_576;
const maxLines = 30;
/** Claude's report of a limit, and codex's word for the one that was reached. */
const limitReport = /"rate_limit_event"|"rateLimitReachedType"\s*:\s*"/;

/** What gemini prints when it refuses to run in a folder that it does not trust. */
const trustRefusal = /\bnot running in a trusted directory\b/i;

function trustFailure(cli: string): string {
  return (
    `${cli} does not trust this folder. Add ${cli} to \`agents.trust_workspace\` in the daemon's ` +
    `config, or run ${cli} there once and trust the folder.`
  );
}

/** Reads what an agent puts out as it comes, and remembers what matters of it. */
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

  /** Takes in what is new; true when there was something. */
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
    // What is only drawn says nothing.
    if (!/[\p{L}\p{N}]/u.test(text)) return;
    this.#words = [...this.#words, ...text.split('\n')].slice(-maxLines);
  }

  /** What the end of the run comes to. */
  verdict(
    cli: string,
    end: { code: number | null; signal: string | null; screen?: string | undefined },
    { now, limitRetryMs }: { now: number; limitRetryMs: number },
  ): Pick<Exit, 'limit' | 'failure'> {
    const { result } = this.seen;
    const succeeded = end.code === 0 && !result?.isError;
    // A run that reports has answered, also when none of its lines is plain text.
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

/** The report in the shape that the table of signals knows. */
function rateLimitIn(line: string): string {
  return /\{[^{}]*"rateLimitType"[^{}]*\}/.exec(line)?.[0] ?? line;
}
