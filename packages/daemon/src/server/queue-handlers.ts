import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { DaemonContext } from '../operations/context.js';
import type { Caller } from './access/authenticator.js';

export function queueHandlers(
  context: Pick<DaemonContext, 'queueTasks'>,
): Handlers<Pick<DaemonOperations, 'receiveQueueTask'>, Caller> {
  return {
    receiveQueueTask: async ({ headers, body, exchange }) => ({
      status: 202,
      body: await context.queueTasks.receive({
        headers,
        contentType: exchange.headers['content-type'],
        // The raw bytes, which the generated types declare as text.
        body: body as unknown as Uint8Array | undefined,
      }),
      headers: { 'X-Queue-Async': 'true' },
    }),
  };
}
