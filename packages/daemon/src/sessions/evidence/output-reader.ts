import { jsonIn } from '@millrace/kit/errors';
import { stripVTControlCharacters } from 'node:util';
import { signalIn } from '../../think/signals.js';
import type { Exit, OutputFormat } from '../../core/session.js';
import type { OutputLog } from '../drivers/session-files.js';
import { ownLimit, type LimitRule } from '../cli/own-rules.js';
import { isFurniture, promptLineIn } from './pane-markers.js';
import type { HostEvent } from '../../acp-host/host-events.js';

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
    {
      now,
      limitRetryMs,
      limit,
    }: { now: number; limitRetryMs: number; limit?: LimitRule | undefined },
  ): Pick<Exit, 'limit' | 'failure'> {
    const lines = (end.screen?.split('\n') ?? this.#words).filter((line) => line.trim() !== '');
    const own = limit && ownLimit(limit, lines.slice(-lastTelling), now);
    if (own) {
      return {
        limit: { reason: own.reason, until: own.resetAt ?? now + limitRetryMs },
        failure: null,
      };
    }
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
    const reported = result?.isError ? failureIn(result.text.split('\n').slice(0, 1)) : undefined;
    const shown =
      end.screen === undefined ? undefined : failureOnScreen(cli, end.screen.split('\n'));
    return { limit: null, failure: reported ?? shown ?? failureIn(this.#words) ?? null };
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

export type EventFormat = Exclude<OutputFormat, 'text'>;
export type JsonObject = Readonly<Record<string, unknown>>;

/** The parts of one output line of an agent that the daemon uses. */
export interface AgentEvent {
  /** The backend's own session. */
  sessionId?: string | undefined;
  model?: string | undefined;
  contextTokens?: number | undefined;
  /** Size of the model's context window. */
  contextWindow?: number | undefined;
  /** A description of the current activity. */
  doing?: string | undefined;
  /** How the run ended, as reported by the agent. */
  result?: { isError: boolean; text: string } | undefined;
}

/** Undefined when the line is no report. */
export function readEvent(format: EventFormat, line: string): AgentEvent | undefined {
  const report = objectOf(line);
  if (!report) return undefined;
  switch (format) {
    case 'acp-json':
      return acpEvent(report as unknown as HostEvent);
    case 'claude-json':
      return claudeEvent(report);
    case 'codex-json':
      return codexEvent(report);
    case 'opencode-json':
      return opencodeEvent(report);
  }
}

/** The status and the context come from the state of the host. */
function acpEvent(event: HostEvent): AgentEvent {
  if (event.type === 'error') return { result: { isError: true, text: event.text } };
  return event.type === 'stop' ? { result: { isError: false, text: '' } } : {};
}

function claudeEvent(report: JsonObject): AgentEvent {
  const sessionId = textIn(report, 'session_id');
  switch (report['type']) {
    case 'system':
      if (report['subtype'] === 'api_retry') return { sessionId, doing: retryWords(report) };
      if (report['subtype'] !== undefined && report['subtype'] !== 'init') return { sessionId };
      return { sessionId, model: textIn(report, 'model'), doing: 'it has begun' };
    case 'assistant': {
      const message = objectIn(report, 'message');
      const tool = blocksOf(message).find((block) => block['type'] === 'tool_use');
      const doing = tool
        ? `it uses the tool ${textIn(tool, 'name') ?? 'unknown'}`
        : 'it is answering';
      // The context of a subagent is not that of the agent.
      const isOwn = typeof report['parent_tool_use_id'] !== 'string' && !isSynthetic(message);
      const contextTokens = isOwn ? claudeContext(objectIn(message, 'usage')) : undefined;
      return { sessionId, doing, contextTokens };
    }
    case 'result': {
      const isError = report['is_error'] === true;
      const text = textIn(report, 'result') ?? textIn(report, 'subtype') ?? '';
      const denial = isError ? undefined : denialIn(report);
      const result = denial === undefined ? { isError, text } : { isError: true, text: denial };
      return { sessionId, contextWindow: windowIn(report), result };
    }
    default:
      return { sessionId };
  }
}

/** Claude writes such a message where no model answered; it has no usage. */
export function isSynthetic(message: JsonObject | undefined): boolean {
  return message?.['model'] === '<synthetic>';
}

function retryWords(report: JsonObject): string {
  const status = report['error_status'] ?? textIn(report, 'error') ?? 'an error';
  const [attempt, max] = [countIn(report, 'attempt'), countIn(report, 'max_retries')];
  const seconds = Math.round(countIn(report, 'retry_delay_ms') / 1000);
  return `the provider answered ${String(status)}; retry ${attempt} of ${max} in ${seconds} s`;
}

/** Helper models with smaller windows may be listed too, so the largest one counts. */
function windowIn(report: JsonObject): number | undefined {
  const models = Object.values(objectIn(report, 'modelUsage') ?? {}) as JsonObject[];
  const windows = models.map((usage) => countIn(usage, 'contextWindow'));
  const largest = Math.max(0, ...windows);
  return largest > 0 ? largest : undefined;
}

/** The first tool call that was denied because no person could allow it. */
function denialIn(report: JsonObject): string | undefined {
  const denials = report['permission_denials'];
  const first: unknown = Array.isArray(denials) ? denials[0] : undefined;
  if (typeof first !== 'object' || first === null) return undefined;
  const { tool_name: name, tool_input: input } = first as JsonObject;
  return `permission denied: ${toolLine({ name, input })}`;
}

/** Context size of an answer: all input tokens, new and cached. */
export function claudeContext(usage: JsonObject | undefined): number | undefined {
  if (!usage) return undefined;
  const names = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'];
  const counts = names.map((name) => countIn(usage, name));
  return counts.reduce((sum, count) => sum + count, 0);
}

function codexEvent(report: JsonObject): AgentEvent {
  switch (report['type']) {
    case 'thread.started':
      return { sessionId: textIn(report, 'thread_id'), doing: 'it has begun' };
    case 'item.started':
    case 'item.completed':
      return { doing: codexDoing(objectIn(report, 'item')) };
    case 'turn.started':
      return { doing: 'it is thinking' };
    case 'turn.completed': {
      const usage = objectIn(report, 'usage');
      const contextTokens = usage && countIn(usage, 'input_tokens');
      return { contextTokens, result: { isError: false, text: '' } };
    }
    case 'turn.failed':
      return {
        result: { isError: true, text: textIn(objectIn(report, 'error'), 'message') ?? '' },
      };
    case 'error': {
      const text = textIn(report, 'message') ?? '';
      if (/^Reconnecting\b.*\d\/\d/.test(text)) return { doing: `it retries: ${text}` };
      return { result: { isError: true, text } };
    }
    default:
      return {};
  }
}

function codexDoing(item: JsonObject | undefined): string {
  switch (item?.['type']) {
    case 'command_execution':
      return 'it runs a command';
    case 'file_change':
      return 'it edits files';
    case 'agent_message':
      return 'it is answering';
    default:
      return 'it is thinking';
  }
}

function opencodeEvent(report: JsonObject): AgentEvent {
  const sessionId = textIn(report, 'sessionID');
  const part = objectIn(report, 'part');
  switch (report['type']) {
    case 'text':
      return { sessionId, doing: 'it is answering' };
    case 'tool_use':
      return { sessionId, doing: `it uses the tool ${textIn(part, 'tool') ?? 'unknown'}` };
    case 'step_finish': {
      const tokens = objectIn(part, 'tokens') ?? {};
      const cache = objectIn(tokens, 'cache') ?? {};
      const counts = [countIn(tokens, 'input'), countIn(cache, 'read'), countIn(cache, 'write')];
      const contextTokens = counts.reduce((sum, count) => sum + count, 0);
      return { sessionId, contextTokens, result: { isError: false, text: '' } };
    }
    case 'error':
      return { sessionId, result: { isError: true, text: opencodeError(report) } };
    default:
      return { sessionId, doing: 'it is thinking' };
  }
}

/** With the status of the provider, which distinguishes a limit from other errors. */
export function opencodeError(report: JsonObject): string {
  const error = objectIn(report, 'error');
  const data = objectIn(error, 'data');
  const status = data?.['statusCode'];
  const text = textIn(data, 'message') ?? textIn(error, 'name') ?? 'error';
  return typeof status === 'number' ? `API error ${status}: ${text}` : text;
}

const maxInputLength = 160;

export function toolLine(block: JsonObject): string {
  const input = objectIn(block, 'input') ?? {};
  const said = ['command', 'file_path', 'path', 'pattern', 'url', 'description']
    .map((name) => textIn(input, name))
    .find((text) => text !== undefined);
  const short = (said ?? '').split('\n')[0]!.slice(0, maxInputLength);
  return `[${textIn(block, 'name') ?? 'tool'}] ${short}`.trimEnd();
}

/** Undefined for a line that is cut short, or no report at all: it is shown as it is. */
export function objectOf(line: string): JsonObject | undefined {
  const report = line.startsWith('{') ? (jsonIn(line) as JsonObject | undefined) : undefined;
  return report && 'type' in report ? report : undefined;
}

export function objectIn(holder: JsonObject | undefined, name: string): JsonObject | undefined {
  const value = holder?.[name];
  return typeof value === 'object' && value !== null ? (value as JsonObject) : undefined;
}

export function textIn(holder: JsonObject | undefined, name: string): string | undefined {
  const value = holder?.[name];
  return typeof value === 'string' ? value : undefined;
}

function countIn(usage: JsonObject, name: string): number {
  const value = usage[name];
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

export function blocksOf(message: JsonObject | undefined): JsonObject[] {
  const content = message?.['content'];
  if (!Array.isArray(content)) return [];
  return content.filter((block): block is JsonObject => typeof block === 'object' && !!block);
}
