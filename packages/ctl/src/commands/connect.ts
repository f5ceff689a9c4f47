import type { CtlCommand } from '../base/command.js';
import type { ConnectFlags } from '../connect/run-connect.js';
import { withTls } from '../db/connection.js';
import type { Tools } from '../base/tools.js';

export function build(connect: CtlCommand, tools: Tools): void {
  connect
    .description(
      'Turn changes of the database into tasks of the queue until Ctrl-C. The file says which ' +
        'changes of which collection become tasks of which queue. Every change becomes exactly ' +
        'one task, also after a crash: positions are stored in the collection ' +
        'millrace_connectors of the database. The servers are found by MILLRACE_DB_URL, ' +
        'MILLRACE_DB_KEY, MILLRACE_QUEUE_URL and MILLRACE_QUEUE_TOKEN, or on this machine. ' +
        '`ctl up` runs the connectors.yaml of its data directory by itself.',
    )
    .option('--config <file>', 'File with the connectors', 'connectors.yaml')
    .option('--check', 'Check the file and exit')
    .option('--metrics-listen <address>', 'Address of /metrics (default: any free port)');
  withTls(connect)
    .example('ctl connect --config connectors.yaml', 'run the connectors of a file')
    .example('ctl connect --config connectors.yaml --check', 'only check the file')
    .exitCode(0, 'stopped cleanly by Ctrl-C or SIGTERM, or the file is valid')
    .exitCode(2, 'usage error, or a mistake in the file')
    .action(async (flags: ConnectFlags) => {
      const { runConnect } = await import('../connect/run-connect.js');
      await runConnect(flags, tools);
    });
}
