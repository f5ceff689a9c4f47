import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import type { MigrateFlags } from './migrate.js';

export function addMigrate(queue: CtlCommand, tools: Tools): void {
  queue
    .command('migrate')
    .summary('Move all tasks to PostgreSQL, or back')
    .description(
      'Move every queue, task and audit record from the embedded store of a data directory ' +
        'to a PostgreSQL database, or back, and compare the two at the end. Stop the servers ' +
        'first. The target must be empty. If it is interrupted, run it again to resume; ' +
        'until it has finished no server starts on the target. The source does not change.',
    )
    .requiredOption('--from <storage>', 'embedded, or postgres://user@host/db')
    .requiredOption('--to <storage>', 'The other store: postgres://user@host/db, or embedded')
    .option('--data <dir>', 'Data directory of the embedded store (default: ./data)')
    .example('ctl queue migrate --from embedded --to postgres://queue@db/queue', 'from ./data')
    .example(
      'ctl queue migrate --from postgres://queue@db/queue --to embedded --data ./new',
      'and back',
    )
    .exitCode(0, 'everything was moved and verified')
    .exitCode(1, 'PostgreSQL is not available, or another failure: run it again')
    .exitCode(2, 'the target is not empty, the source changed, or usage error')
    .action(async (flags: MigrateFlags) => {
      const { migrate } = await import('./migrate.js');
      await migrate(flags, tools);
    });
}
