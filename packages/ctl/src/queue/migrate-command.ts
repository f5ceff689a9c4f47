import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import type { MigrateFlags } from './migrate.js';

export function addMigrate(queue: CtlCommand, tools: Tools): void {
  queue
    .command('migrate')
    .summary('Move all tasks to PostgreSQL, or back')
    .description(
      'Moves every queue, task and audit record from the embedded store of a data directory to a ' +
        'PostgreSQL database, or back, and compares the two when it is done. Stop the servers ' +
        'first. The target must be empty. Broken off, it goes on where it was when it is run ' +
        'again; until it is done no server starts on the target. The source stays as it is.',
    )
    .requiredOption('--from <storage>', 'embedded, or postgres://user@host/db')
    .requiredOption('--to <storage>', 'The other one')
    .option('--data <dir>', 'Data directory of the embedded store (default: ./data)')
    .example('ctl queue migrate --from embedded --to postgres://queue@db/queue', 'from ./data')
    .example(
      'ctl queue migrate --from postgres://queue@db/queue --to embedded --data ./new',
      'and back',
    )
    .exitCode(0, 'everything was moved and is the same')
    .exitCode(1, 'PostgreSQL went away, or another failure: run it again')
    .exitCode(2, 'a target that is not empty, a source that changed, or usage error')
    .action(async (flags: MigrateFlags) => {
      const { migrate } = await import('./migrate.js');
      await migrate(flags, tools);
    });
}
