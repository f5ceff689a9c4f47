import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { TopFlags } from './top.js';

export function addTop(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('top')
    .summary('Show rates and latencies of queues live')
    .description(
      'Show throughput, failures, waiting and run times of queues over the last minute, redrawn ' +
        'every two seconds until Ctrl-C; the bars show the throughput of the last ten minutes. ' +
        'Without a terminal, print one table, or with --json one line per interval.',
    )
    .argument('[queues...]', 'only these (default: all that you administer)')
    .option('--interval <duration>', 'Refresh interval (default: 2s)')
    .option('--count <number>', 'Exit after this many refreshes')
    .example('ctl queue top', 'all of them')
    .example('ctl queue top mail --interval 10s', 'one, every ten seconds')
    .example('ctl queue top --json --count 1', 'for scripts');
  withQueue(command).action(async (names: string[], flags: QueueFlags & TopFlags) => {
    const { showTop } = await import('./top.js');
    await showTop(queueApi(flags, tools), names, flags, tools);
  });
}
