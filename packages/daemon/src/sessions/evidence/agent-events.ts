import { hostEventLines, type HostEvent } from '../../acp-host/host-events.js';
import type { OutputFormat } from '../../core/session.js';

type EventFormat = Exclude<OutputFormat, 'text'>;
type JsonObject = Readonly<Record<string, unknown>>;

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
  }
}

/** The lines to show for an event; undefined when the line is not one. */
export function renderEvent(format: EventFormat, line: string): string[] | undefined {
  const report = objectOf(line);
  if (!report) return undefined;
  switch (format) {
    case 'acp-json':
      return hostEventLines(report as unknown as HostEvent);
    case 'claude-json':
      return claudeLines(report);
    case 'codex-json':
      return codexLines(report);
  }
}

/** The text of a report that continues the line of the report before; undefined for others. */
export function restOfLine(format: EventFormat, line: string): string | undefined {
  const report = format === 'acp-json' ? objectOf(line) : undefined;
  return report?.['isRest'] === true ? textIn(report, 'text') : undefined;
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

const maxInputLength = 160;

function toolLine(block: JsonObject): string {
  const input = objectIn(block, 'input') ?? {};
  const said = ['command', 'file_path', 'path', 'pattern', 'url', 'description']
    .map((name) => textIn(input, name))
    .find((text) => text !== undefined);
  const short = (said ?? '').split('\n')[0]!.slice(0, maxInputLength);
  return `[${textIn(block, 'name') ?? 'tool'}] ${short}`.trimEnd();
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

function splitText(text: string | undefined): string[] {
  return text === undefined || text === '' ? [] : text.trimEnd().split(/\r?\n/);
}

function objectOf(line: string): JsonObject | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && 'type' in value ? value : undefined;
  } catch {
    // Cut short, or no report at all: it is shown as it is.
    return undefined;
  }
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

function blocksOf(message: JsonObject | undefined): JsonObject[] {
  const content = message?.['content'];
  if (!Array.isArray(content)) return [];
  return content.filter((block): block is JsonObject => typeof block === 'object' && !!block);
}
