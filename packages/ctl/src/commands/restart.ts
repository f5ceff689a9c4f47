import { Argument } from 'commander';
import type { CtlCommand } from '../base/command.js';
import type { RunningFlags } from '../running/stop-and-restart.js';
import type { Tools } from '../base/tools.js';

export function build(restart: CtlCommand, tools: Tools): void {
  restart
    .description(
      'Restart the servers of a running `ctl up`, one after the other. Each finishes its work ' +
        'in progress first and keeps its address.',
    )
    .addArgument(
      new Argument('[part]', 'one server; default: all').choices(['db', 'queue', 'daemon']),
    )
    .option('--data <dir>', 'Data directory of the servers')
    .example('ctl restart', 'all of them, for example after an upgrade')
    .example('ctl restart queue', 'after a change of queue.yaml')
    .action(async (part: string | undefined, flags: RunningFlags) => {
      const running = await import('../running/stop-and-restart.js');
      await running.restart(part, flags, tools);
    });
}
