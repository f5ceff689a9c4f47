import { Argument } from 'commander';
import type { CtlCommand } from '../base/command.js';
import type { LogsFlags } from '../running/show-logs.js';
import type { Tools } from '../base/tools.js';

export function build(logs: CtlCommand, tools: Tools): void {
  logs
    .description(
      'Show the last log lines of the servers that `ctl up` runs or ran. With --json, each ' +
        'line as it was logged.',
    )
    .addArgument(
      new Argument('[part]', 'one server; default: all').choices(['db', 'queue', 'daemon']),
    )
    .option('-f, --follow', 'Follow new lines until Ctrl-C')
    .option('-n, --lines <number>', 'Number of lines to start with', '100')
    .option('--data <dir>', 'Data directory of the servers')
    .example('ctl logs', 'the last 100 lines')
    .example('ctl logs queue -f', 'follow the queue')
    .example('ctl logs --json --lines 1000', 'for scripts')
    .action(async (part: string | undefined, flags: LogsFlags) => {
      const { showLogs } = await import('../running/show-logs.js');
      await showLogs(part, flags, tools);
    });
}
