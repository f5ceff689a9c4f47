import { messageOf } from '@millrace/kit/errors';
import type { Tools } from '../base/tools.js';
import { queueApi } from '../queue/api.js';
import { runningUp } from '../queue/locate.js';
import type { Check, Finding } from './check.js';

/** Checks the queues of a server on this data directory; none if no server runs there. */
export function queueChecks(dataDir: string, tools: Tools): Check[] {
  if (!runningUp(dataDir)) return [];
  return [{ name: 'queues', run: () => queuesOf(dataDir, tools) }];
}

async function queuesOf(data: string, tools: Tools): Promise<Finding> {
  try {
    const { body: queues } = await queueApi({ data }, tools).call('listQueues');
    const alone = queues.filter(({ summary }) => summary.state === 'no_worker');
    if (alone.length > 0) {
      const names = alone.map(({ name }) => name).join(', ');
      return {
        status: 'warn',
        finding: `no_worker: tasks are due and no worker is connected to ${names}`,
        advice: 'Start one with `ctl queue work` or an SDK.',
      };
    }
    const open = queues.filter(({ summary }) => summary.breaker === 'open');
    if (open.length > 0) {
      const names = open.map(({ name }) => name).join(', ');
      const finding = `a handler keeps failing, so its circuit breaker is open: ${names}`;
      return { status: 'warn', finding, advice: 'Check it with `ctl queue stats`.' };
    }
    return { status: 'ok', finding: `${queues.length} on ${data}` };
  } catch (error) {
    const finding = `the queue server does not list its queues: ${messageOf(error)}`;
    return { status: 'warn', finding, advice: 'Check it with `ctl status`.' };
  }
}
