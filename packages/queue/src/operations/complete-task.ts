import type { QueueContext } from './base/context.js';
import type { Envelope } from './base/envelope.js';
import type { Principal } from './base/principal.js';
import { maxResultBytes } from '../core/result.js';
import { fail } from './base/refusal.js';
import { settleTask, type SettleRequest } from './settle-task.js';

/** Completes an asynchronous task. */
export function completeTask(
  context: QueueContext,
  caller: Principal,
  request: SettleRequest,
): Promise<Envelope> {
  return settleTask(context, caller, request, (id) => {
    const { result } = context.checks.complete.read(request.body ?? {});
    return context.delivery.complete(id, request.leaseToken, resultText(result));
  });
}

/** JSON text; undefined if there is no result. */
export function resultText(result: unknown): string | undefined {
  if (result === undefined) return undefined;
  const text = JSON.stringify(result);
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxResultBytes) return text;
  throw fail(
    'RESULT_TOO_LARGE',
    `The result has ${bytes} bytes; a task keeps at most ${maxResultBytes}. Store it elsewhere and ` +
      'return its address.',
  );
}
