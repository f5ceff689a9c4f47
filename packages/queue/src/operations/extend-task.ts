import type { QueueContext } from './base/context.js';
import type { Envelope } from './base/envelope.js';
import type { Principal } from './base/principal.js';
import { maxMessageBytes } from '../core/outcome.js';
import { failBody } from './base/refusal.js';
import { settleTask, type SettleRequest } from './settle-task.js';

/** Extends the lease of an asynchronous task. */
export function extendTask(
  context: QueueContext,
  caller: Principal,
  request: SettleRequest,
): Promise<Envelope> {
  return settleTask(context, caller, request, (id) => {
    const { extend_ms, progress } = context.checks.extend.read(request.body);
    const report = progress && readProgress(progress);
    return context.delivery.extend(id, request.leaseToken, extend_ms, report);
  });
}

function readProgress({ percent = null, message = null }: GivenProgress) {
  if (message !== null && Buffer.byteLength(message) > maxMessageBytes) {
    const fault = { pointer: '/progress/message', message: 'must have at most 1024 bytes' };
    throw failBody('INVALID_TASK', [fault]);
  }
  return { percent, message };
}

interface GivenProgress {
  percent?: number | null;
  message?: string | null;
}
