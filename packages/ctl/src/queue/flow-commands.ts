import type { QueueSchema } from '@millrace/contract/queue';
import { parseJson } from '../base/arguments.js';
import type { Tools } from '../base/tools.js';
import { printable } from '../render/text.js';
import { queueApi, type QueueFlags } from './api.js';

export async function showTree(id: string, flags: QueueFlags, tools: Tools): Promise<void> {
  const { body } = await queueApi(flags, tools).call('getTaskTree', { id });
  const more = body.truncated ? ['(more than 1,000 tasks; the rest is not shown)'] : [];
  tools.terminal.show(body, () => `${[...nodeLines(body.root, ''), ...more].join('\n')}\n`);
}

function nodeLines(node: QueueSchema<'TaskNode'>, indent: string): string[] {
  if (node.hidden) return [`${indent}${node.id} (no grant on its queue)`];
  const { status, queue, handler_ref: handler, waiting_for: wait, steps = [] } = node;
  const state = wait ? `${status} (${wait})` : status;
  const done = steps.length > 0 ? `  steps: ${steps.map(printable).join(', ')}` : '';
  const line = `${indent}${node.id} ${state} ${queue} ${handler}${done}`;
  return [line, ...(node.children ?? []).flatMap((child) => nodeLines(child, `${indent}  `))];
}

export async function sendSignal(
  id: string,
  name: string,
  payload: string | undefined,
  flags: QueueFlags & { signalId?: string },
  tools: Tools,
): Promise<void> {
  const { signalId } = flags;
  const body = {
    name,
    ...(payload !== undefined && { payload: parseJson(payload, 'payload') }),
    ...(signalId !== undefined && { id: signalId }),
  };
  const { body: sent } = await queueApi(flags, tools).call('sendSignal', { id, body });
  tools.terminal.show(sent, `Sent ${printable(name)} to ${id}.\n`);
}
