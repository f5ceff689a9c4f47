import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import type { UpFlags } from '../up/run-up.js';

export function build(up: CtlCommand, tools: Tools): void {
  up.description(
    'Start the database, the queue and the daemon on this machine, each in its own ' +
      'process, print their addresses and run until Ctrl-C, which stops them gracefully; a ' +
      'second Ctrl-C kills them. A process that exits is restarted. The first run creates ' +
      'the tokens, which commands find by themselves, and the queue "agents", whose tasks the daemon ' +
      'runs. With a connectors.yaml in the data directory it also runs `ctl connect`. Prints a link that logs your browser in to the dashboard.',
  )
    .option('--data <dir>', 'Data directory (default: your data directory)')
    .option('--listen <address>', 'Address of the daemon (default: 127.0.0.1:8765)')
    .option('--queue-listen <address>', 'Address of the queue (default: 127.0.0.1:8081)')
    .option(
      '--queue-grpc <address>',
      'gRPC address of the queue (default: 127.0.0.1:8082, another port if that is in use)',
    )
    .option(
      '--metrics-listen <address>',
      "Address of the queue's metrics (default: 127.0.0.1:9464)",
    )
    .option('--db-grpc <address>', 'gRPC address of the database (default: 127.0.0.1:5433)')
    .option('--db-http <address>', 'REST address of the database (default: 127.0.0.1:8080)')
    .option('--no-auth', 'Require no token and no key, on loopback addresses only')
    .option('--no-upgrade', 'Refuse data that an older version has written')
    .example('ctl up', 'start everything; Ctrl-C stops it')
    .example('ctl up --data ./data', 'use another data directory')
    .example('ctl up --json', 'one line of JSON per event, for scripts')
    .exitCode(0, 'stopped cleanly by Ctrl-C or SIGTERM')
    .exitCode(1, 'a server could not start, or failed too often')
    .action(async (flags: UpFlags) => {
      const { runUp } = await import('../up/run-up.js');
      await runUp(flags, tools);
    });
}
