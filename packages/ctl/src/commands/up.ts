import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import type { UpFlags } from '../up/run-up.js';

export function build(up: CtlCommand, tools: Tools): void {
  up.description(
    'Starts the database, the queue and the daemon on this machine, each a process of its own, ' +
      'prints where they listen and runs until Ctrl-C, which lets them finish what they are ' +
      'doing and stops them; a second Ctrl-C ends them at once. A part that dies is started ' +
      'again. The first run makes the tokens that the parts ask for, which ctl finds by itself, and ' +
      'the queue "agents", whose tasks the daemon runs. Prints a link to the dashboard that logs ' +
      'your browser in.',
  )
    .option('--data <dir>', 'Keep the data in this directory (default: your data directory)')
    .option('--listen <address>', 'Where the daemon listens (default: 127.0.0.1:8765)')
    .option('--queue-listen <address>', 'Where the queue listens (default: 127.0.0.1:8081)')
    .option('--metrics-listen <address>', 'Where its metrics are (default: 127.0.0.1:9464)')
    .option('--db-grpc <address>', 'Where the database serves gRPC (default: 127.0.0.1:5433)')
    .option('--db-http <address>', 'Where the database serves REST (default: 127.0.0.1:8080)')
    .option('--no-auth', 'Ask for no token and no key, on loopback addresses only')
    .example('ctl up', 'start everything; Ctrl-C stops it')
    .example('ctl up --data ./data', 'keep the data in a directory of your choice')
    .example('ctl up --json', 'one line of JSON per event, for scripts')
    .exitCode(0, 'stopped cleanly by Ctrl-C or SIGTERM')
    .exitCode(1, 'a part could not start, or died too often')
    .action(async (flags: UpFlags) => {
      const { runUp } = await import('../up/run-up.js');
      await runUp(flags, tools);
    });
}
