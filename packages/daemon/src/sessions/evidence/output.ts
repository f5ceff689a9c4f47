import type { DaemonSchema } from '@millrace/contract/daemon';
import type { OutputFormat } from '../../core/session.js';
import { hostEventLines, type HostEvent } from '../../acp-host/host-events.js';
import {
  blocksOf,
  isSynthetic,
  objectIn,
  objectOf,
  opencodeError,
  textIn,
  toolLine,
  type EventFormat,
  type JsonObject,
} from './output-reader.js';
import type { OutputLog } from '../drivers/session-files.js';
import { TerminalText } from './terminal-text.js';

const pieceBytes = 1_048_576;
/** Maximum number of bytes read for the end of an output. */
const maxTailBytes = 2_097_152;
/** A longer line without a line break is split. */
const maxLineBytes = 65_536;

export interface OutputView {
  log: OutputLog;
  format: OutputFormat;
  /** The run has ended: a last line without a line break is complete. */
  isOver: boolean;
}

/** A stretch of a session's output as lines that people can read. */
export function readOutput(
  view: OutputView,
  { after, limit }: { after?: number | undefined; limit: number },
): DaemonSchema<'SessionOutput'> {
  return after === undefined ? lastLines(view, limit) : linesFrom(view, after, limit);
}

function linesFrom(view: OutputView, after: number, limit: number) {
  // For an event with several lines, the position inside it counts the lines already returned.
  const shown = view.format === 'text' ? 0 : shownInside(view.log, after);
  const { from, bytes } = view.log.read(after - shown, pieceBytes);
  const writer = writerFor(view.format);
  let at = 0;
  let lineStart = 0;
  while (at < bytes.length && writer.count - shown < limit) {
    const end = lineEnd(bytes, at, view.isOver || bytes.length === pieceBytes);
    if (end === undefined) break;
    lineStart = at;
    writer.write(bytes.toString('utf8', at, end));
    at = end;
  }
  const all = writer.lines();
  const lines = all.slice(shown, shown + limit);
  const remaining = all.length - shown - lines.length;
  if (remaining <= 0) return { lines, next: from + at };
  const inLast = all.length - writer.countBeforeLast;
  return { lines, next: from + Math.min(at - 1, lineStart + inLast - remaining) };
}

/** The offset of a position inside a line. */
function shownInside(log: OutputLog, after: number): number {
  const begin = Math.max(log.start(), after - pieceBytes);
  if (after <= begin || after > log.end()) return 0;
  const { from, bytes } = log.read(begin, after - begin);
  const lastEnd = bytes.lastIndexOf(10);
  return lastEnd === -1 ? after - from : bytes.length - 1 - lastEnd;
}

function lastLines(view: OutputView, limit: number) {
  const end = view.log.end();
  const wanted = Math.min(maxTailBytes, 65_536 + limit * 400);
  const { from, bytes } = view.log.read(Math.max(view.log.start(), end - wanted), wanted + 65_536);
  const writer = writerFor(view.format, { joins: true });
  // Unless it is the very start, the first line may be a part of one.
  let at = from <= view.log.start() ? 0 : (lineEnd(bytes, 0, false) ?? 0);
  while (at < bytes.length) {
    const lineStop = lineEnd(bytes, at, view.isOver);
    if (lineStop === undefined) break;
    writer.write(bytes.toString('utf8', at, lineStop));
    at = lineStop;
  }
  return { lines: writer.lines().slice(-limit), next: from + at };
}

/** The end of the line that starts at `at`, including its line break. */
function lineEnd(bytes: Buffer, at: number, isLast: boolean): number | undefined {
  const found = bytes.indexOf(10, at);
  if (found !== -1) return found + 1;
  return isLast || bytes.length - at > maxLineBytes ? bytes.length : undefined;
}

interface LineWriter {
  readonly count: number;
  /** How many lines there were before the last write. */
  readonly countBeforeLast: number;
  write(text: string): void;
  lines(): string[];
}

/** `joins`: a line that was written in parts is one line. Positions count it in parts. */
function writerFor(format: OutputFormat, { joins = false } = {}): LineWriter {
  return format === 'text' ? new TextLines() : new EventLines(format, joins);
}

class TextLines implements LineWriter {
  readonly #terminal = new TerminalText();

  get count(): number {
    return this.#terminal.rows.length - 1;
  }

  countBeforeLast = 0;

  write(text: string): void {
    this.countBeforeLast = this.count;
    this.#terminal.write(text);
  }

  lines(): string[] {
    const rows = this.#terminal.rows.map((row) => row.trimEnd());
    // Nothing was written after the last line break.
    return rows.at(-1) === '' ? rows.slice(0, -1) : rows;
  }
}

class EventLines implements LineWriter {
  readonly #lines: string[] = [];
  #last: string | undefined;

  constructor(
    private readonly format: EventFormat,
    private readonly joins: boolean,
  ) {}

  get count(): number {
    return this.#lines.length;
  }

  countBeforeLast = 0;

  write(report: string): void {
    const text = this.joins ? this.#joined(report) : report;
    this.countBeforeLast = this.#lines.length;
    this.#last = text;
    const rendered = renderEvent(this.format, text.trimEnd());
    if (rendered === undefined) {
      const plain = new TextLines();
      plain.write(text);
      this.#lines.push(...plain.lines());
    } else if (!this.#isRepeat(text, rendered)) {
      this.#lines.push(...rendered);
    }
  }

  /**
   * The event from the start of its line, replacing lines shown before, if it is the rest of one.
   */
  #joined(report: string): string {
    const rest = this.#last === undefined ? undefined : restOfLine(this.format, report);
    if (rest === undefined) return report;
    const start = JSON.parse(this.#last!) as { text: string };
    this.#lines.length = this.countBeforeLast;
    return JSON.stringify({ ...start, text: start.text + rest });
  }

  /** Codex reports the error of a turn as an event, and once more as the end of the turn. */
  #isRepeat(text: string, rendered: readonly string[]): boolean {
    if (this.format !== 'codex-json' || !text.startsWith('{"type":"turn.failed"')) return false;
    return this.#lines.slice(-rendered.length).join('\n') === rendered.join('\n');
  }

  lines(): string[] {
    return this.#lines;
  }
}

/** The lines to show for an event; undefined when the line is not one. */
function renderEvent(format: EventFormat, line: string): string[] | undefined {
  const report = objectOf(line);
  if (!report) return undefined;
  switch (format) {
    case 'acp-json':
      return hostEventLines(report as unknown as HostEvent);
    case 'claude-json':
      return claudeLines(report);
    case 'codex-json':
      return codexLines(report);
    case 'opencode-json':
      return opencodeLines(report);
  }
}

/** The text of a report that continues the line of the report before; undefined for others. */
function restOfLine(format: EventFormat, line: string): string | undefined {
  const report = format === 'acp-json' ? objectOf(line) : undefined;
  return report?.['isRest'] === true ? textIn(report, 'text') : undefined;
}

function claudeLines(report: JsonObject): string[] {
  switch (report['type']) {
    case 'assistant':
      // The result repeats the text of an error.
      if (isSynthetic(objectIn(report, 'message'))) return [];
      return blocksOf(objectIn(report, 'message')).flatMap((block) => {
        if (block['type'] === 'text') return splitText(textIn(block, 'text'));
        if (block['type'] === 'tool_use') return [toolLine(block)];
        return [];
      });
    case 'result':
      // On success the last answer was already shown.
      return report['is_error'] === true ? splitText(textIn(report, 'result')) : [];
    default:
      return [];
  }
}

function codexLines(report: JsonObject): string[] {
  const item = objectIn(report, 'item');
  if (report['type'] === 'item.completed') {
    switch (item?.['type']) {
      case 'agent_message':
        return splitText(textIn(item, 'text'));
      case 'command_execution':
        return [`[command] ${(textIn(item, 'command') ?? '').split('\n')[0]}`];
      case 'file_change':
        return ['[edit]'];
      default:
        return [];
    }
  }
  if (report['type'] === 'turn.failed') {
    return splitText(textIn(objectIn(report, 'error'), 'message'));
  }
  return report['type'] === 'error' ? splitText(textIn(report, 'message')) : [];
}

function opencodeLines(report: JsonObject): string[] {
  const part = objectIn(report, 'part');
  switch (report['type']) {
    case 'text':
      return splitText(textIn(part, 'text'));
    case 'tool_use':
      return [toolLine({ name: part?.['tool'], input: objectIn(part, 'state')?.['input'] })];
    case 'error':
      return splitText(opencodeError(report));
    default:
      return [];
  }
}

function splitText(text: string | undefined): string[] {
  return text === undefined || text === '' ? [] : text.trimEnd().split(/\r?\n/);
}
