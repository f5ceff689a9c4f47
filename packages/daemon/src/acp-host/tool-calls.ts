import type { ToolCall, ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk';
import { changedLines, type HostEvent } from './host-events.js';
import type { PendingPermission } from './state.js';

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
