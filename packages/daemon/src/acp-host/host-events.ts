import { Transform } from 'node:stream';
import type { ToolCall, ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { PendingPermission } from './state.js';

/** Events that the host writes to the output of a session, one JSON line each. */
export type HostEvent =
  | { type: 'prompt'; text: string }
  /** `isRest`: continues the line of the event before, which was written while the agent paused. */
  | { type: 'message' | 'thought'; text: string; isRest?: true }
  | { type: 'tool'; id: string; title: string; kind: string; status: string }
  | { type: 'diff'; path: string; before: string | null; after: string }
  | { type: 'plan'; entries: { content: string; status: string }[] }
  | { type: 'usage'; used: number; size: number }
  | { type: 'permission'; id: string; title: string; body: string }
  | { type: 'answer'; id: string; title: string; label: string }
  | { type: 'stop'; reason: string }
  | { type: 'error'; text: string }
  | { type: 'log'; text: string };

const maxDiffLines = 40;

/** The lines that a person is shown of an event. */
export function hostEventLines(event: HostEvent): string[] {
  switch (event.type) {
    case 'prompt':
      return [`> ${event.text.split('\n')[0]!}`];
    case 'message':
    case 'error':
    case 'log':
      return event.text.trimEnd().split(/\r?\n/);
    case 'thought':
      return event.text
        .trimEnd()
        .split(/\r?\n/)
        .map((line) => `[thought] ${line}`);
    case 'tool': {
      const end = event.status === 'completed' || event.status === 'failed' ? event.status : '';
      return [`[${event.kind}] ${oneLine(event.title)}${end === '' ? '' : `: ${end}`}`];
    }
    case 'diff':
      return [`[diff] ${event.path}`, ...changedLines(event.before ?? '', event.after)];
    case 'plan':
      return event.entries.map(({ content, status }) => `[plan] ${mark(status)} ${content}`);
    case 'usage':
      return [];
    case 'permission':
      return [`[question] ${oneLine(event.title)}`];
    case 'answer':
      return [`[answer] ${event.label}`];
    case 'stop':
      return event.reason === 'end_turn' ? [] : [`[stop] ${event.reason}`];
  }
}

function mark(status: string): string {
  return status === 'completed' ? '[x]' : status === 'in_progress' ? '[>]' : '[ ]';
}

function oneLine(text: string): string {
  return text.split('\n')[0]!;
}

/** What differs between two texts: all between their common start and their common end. */
export function changedLines(before: string, after: string): string[] {
  const old = before === '' ? [] : before.split('\n');
  const fresh = after === '' ? [] : after.split('\n');
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++;
  let end = 0;
  while (
    end < old.length - start &&
    end < fresh.length - start &&
    old[old.length - 1 - end] === fresh[fresh.length - 1 - end]
  ) {
    end++;
  }
  const lines = [
    ...old.slice(start, old.length - end).map((line) => `-${line}`),
    ...fresh.slice(start, fresh.length - end).map((line) => `+${line}`),
  ];
  if (lines.length <= maxDiffLines) return lines;
  return [...lines.slice(0, maxDiffLines), `... ${lines.length - maxDiffLines} more lines`];
}

/** As long as a line of a transcript may be: a message can contain a whole file. */
export const maxLineBytes = 64 * 1_048_576;
const maxLogLength = 4_000;

/**
 * Passes the messages of an agent on, one per line. Some agents also print banners and warnings to
 * stdout, which become log lines. A line above the limit is dropped, and reported once.
 */
export function messageLines(emit: (event: HostEvent) => void, limit = maxLineBytes): Transform {
  let parts: Buffer[] = [];
  let size = 0;
  let isTooLong = false;
  const add = (part: Buffer) => {
    size += part.length;
    if (!isTooLong && size > limit) {
      isTooLong = true;
      parts = [];
      emit({ type: 'error', text: `a message above ${limit} bytes was dropped` });
    }
    if (!isTooLong) parts.push(part);
  };
  const end = (out: Transform) => {
    const line = Buffer.concat(parts);
    if (!isTooLong) pass(out, line, emit);
    [parts, size, isTooLong] = [[], 0, false];
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let from = 0;
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
        add(chunk.subarray(from, at));
        end(this);
        from = at + 1;
      }
      if (from < chunk.length) add(chunk.subarray(from));
      done();
    },
  });
}

function pass(out: Transform, line: Buffer, emit: (event: HostEvent) => void): void {
  const start = line.findIndex((byte) => byte > 32);
  if (start < 0) return;
  if (line[start] === 0x7b) out.push(Buffer.concat([line, Buffer.from('\n')]));
  else emit({ type: 'log', text: line.toString('utf8', 0, maxLogLength) });
}

interface ToolCallState {
  title: string;
  kind: string;
  status: string;
  content: readonly ToolCallContent[];
  rawInput: unknown;
  paths: readonly string[];
}

const maxBodyLength = 4_000;
const maxDiffLength = 200_000;

/** The tool calls of a session: updates contain only the changed fields. */
export class ToolCalls {
  readonly #known = new Map<string, ToolCallState>();

  /** Applies an update, and returns the new events for readers. */
  take(update: ToolCall | ToolCallUpdate): HostEvent[] {
    const id = update.toolCallId;
    const before = this.#known.get(id);
    const after = merged(before, update);
    this.#known.set(id, after);
    const { title, kind, status } = after;
    const isNew = before?.title !== title || before.kind !== kind || before.status !== status;
    const shown = new Set((before?.content ?? []).map((each) => JSON.stringify(each)));
    const diffs = after.content.flatMap((each): HostEvent[] => {
      if (each.type !== 'diff' || shown.has(JSON.stringify(each))) return [];
      const [old, fresh] = [each.oldText ?? null, each.newText];
      if ((old?.length ?? 0) + fresh.length > maxDiffLength) return [];
      return [{ type: 'diff', path: each.path, before: old, after: fresh }];
    });
    return [...(isNew ? [{ type: 'tool' as const, id, title, kind, status }] : []), ...diffs];
  }

  /** A description of the running tool. */
  get doing(): string | null {
    const running = [...this.#known.values()].findLast(({ status }) => status === 'in_progress');
    return running ? `${running.kind}: ${running.title.split('\n')[0]!}` : null;
  }

  /** What a permission request is about. */
  permissionDetails(update: ToolCallUpdate): Pick<PendingPermission, 'title' | 'tool' | 'body'> {
    const before = this.#known.get(update.toolCallId);
    const call = merged(before, update);
    // opencode asks for a folder outside of the workspace as `other`, about a call of a known kind.
    const kind = call.kind === 'other' ? (before?.kind ?? 'other') : call.kind;
    const { title } = call;
    const tool = update.name ?? (kind === 'other' ? null : kind);
    return { title: title.split('\n')[0]!, tool, body: bodyOf(call).slice(0, maxBodyLength) };
  }

  /** A new turn: unfinished tool calls of the last one do not run any more. */
  clear(): void {
    this.#known.clear();
  }
}

function merged(
  before: ToolCallState | undefined,
  update: ToolCall | ToolCallUpdate,
): ToolCallState {
  return {
    title: update.title ?? before?.title ?? 'a tool',
    kind: update.kind ?? before?.kind ?? 'other',
    status: update.status ?? before?.status ?? 'pending',
    content: update.content ?? before?.content ?? [],
    rawInput: update.rawInput ?? before?.rawInput,
    paths: update.locations?.map(({ path }) => path) ?? before?.paths ?? [],
  };
}

/** The command, the diff, or the files. */
function bodyOf({ kind, title, content, rawInput, paths }: ToolCallState): string {
  const command = commandIn(rawInput);
  if (command !== undefined) return command;
  const parts = content.flatMap((each) => {
    if (each.type === 'diff') {
      return [each.path, ...changedLines(each.oldText ?? '', each.newText)];
    }
    return each.type === 'content' && each.content.type === 'text' ? [each.content.text] : [];
  });
  if (parts.length > 0) return parts.join('\n');
  if (paths.length > 0) return paths.join('\n');
  return kind === 'execute' ? title : '';
}

function commandIn(input: unknown): string | undefined {
  if (typeof input !== 'object' || input === null) return undefined;
  const { command } = input as { command?: unknown };
  if (typeof command === 'string') return command;
  return Array.isArray(command) ? command.join(' ') : undefined;
}
