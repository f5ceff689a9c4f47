import type { DaemonSchema } from '@millrace/contract/daemon';
import type { HostState, PendingPermission } from '../../acp-host/state.js';
import type { Sign } from '../../core/session.js';
import { toolKind, type QuestionContent, type QuestionOption } from '../../questions/question.js';
import { signalIn } from '../../think/signals.js';

/** The status of an agent, from the protocol alone. */
export function acpSign(
  state: HostState,
  { cli, now, limitRetryMs }: { cli: string; now: number; limitRetryMs: number },
): Sign | undefined {
  switch (state.status) {
    case 'starting':
      return undefined;
    case 'waiting':
      return waitingSign(state.permissions[0]);
    case 'working':
      return { status: 'working', reason: state.doing ?? 'its prompt is running' };
    case 'idle':
      return idleSign(state, { cli, now, limitRetryMs });
  }
}

function idleSign(
  { stopReason, failure }: HostState,
  { cli, now, limitRetryMs }: { cli: string; now: number; limitRetryMs: number },
): Sign {
  if (!failure) {
    const reason = stopReason === null ? 'its session is open' : `its turn ended: ${stopReason}`;
    return { status: 'idle', reason };
  }
  const { text, at } = failure;
  const found = signalIn({ id: cli, succeeded: false, stdout: text, stderr: '' }, at);
  const limitedUntil = Math.max(at + limitRetryMs, found?.resetAt ?? 0);
  if (found && found.kind !== 'unauthenticated' && now < limitedUntil) {
    return { status: 'rate_limited', reason: found.reason, limitedUntil };
  }
  return { status: 'idle', reason: `its turn failed: ${text}`, failure: text };
}

export function waitingSign(permission: PendingPermission | undefined): Sign {
  const status = 'waiting_for_input';
  if (!permission) return { status, reason: 'it asks for a permission' };
  const { title, body } = permission;
  const [line = ''] = body.split('\n');
  const detail = line === '' || line === title ? '' : ` (${line.slice(0, 160)})`;
  return { status, reason: `it asks: ${title}${detail}` };
}

/** The agent's own description of itself, in the form of the API. */
export function acpFacts(state: HostState): DaemonSchema<'AcpFacts'> {
  const { agent, mode, modes, models } = state;
  return { agent, mode, modes, models };
}

/** A permission request as a question; `ref` finds it again. */
export function contentOf(permission: PendingPermission, ref: string): QuestionContent {
  const { title, body, tool, options } = permission;
  return {
    kind: 'permission',
    title,
    body,
    tool: tool === null ? null : toolKind(tool),
    options: options.map(({ id, label, kind }) => ({ id, label, kind: optionKind(kind) })),
    ref,
  };
}

function optionKind(kind: string): QuestionOption['kind'] {
  switch (kind) {
    case 'allow_once':
    case 'allow_always':
    case 'reject_always':
      return kind;
    case 'reject_once':
      return 'reject';
    default:
      return 'choice';
  }
}

/** Permission ids restart with every start of the agent. */
export function permissionRef(starts: number, id: string): string {
  return `${starts}-${id}`;
}
