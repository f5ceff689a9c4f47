import type { CtlCommand } from '../base/command.js';
import type { RunningFlags } from '../running/stop-and-restart.js';
import type { Tools } from '../base/tools.js';

export function build(down: CtlCommand, tools: Tools): void {
  down
    .description(
      'Stop a running `ctl up` with all its servers gracefully and wait until it has exited. ' +
        'Agents in terminals keep running.',
    )
    .option('--data <dir>', 'Data directory of the servers')
    .example('ctl down', 'stop everything')
    .example('ctl down --data ./data', 'what runs on another data directory')
    .exitCode(0, 'stopped, or nothing was running')
    .action(async (flags: RunningFlags) => {
      const { stopAll } = await import('../running/stop-and-restart.js');
      await stopAll(flags, tools);
    });
}
