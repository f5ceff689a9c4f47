import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { DeadListFlags } from './dead-letters.js';
import type { SelectFlags } from './selection.js';

export function addDlq(queue: CtlCommand, tools: Tools): void {
  const dlq = queue
    .command('dlq')
    .summary('Browse dead tasks')
    .description(
      'Shows the dead-letter queue: the tasks that will not be tried again by themselves. ' +
        '`ctl queue redrive` runs them again, `ctl queue purge` deletes them.',
    )
    .example('ctl queue dlq groups mail', 'what went wrong, by kind')
    .example('ctl queue dlq list mail --error-type HTTP_5XX', 'which tasks');
  addDeadList(dlq, tools);
  const groups = dlq
    .command('groups')
    .summary('Count dead tasks by kind of failure')
    .description('Counts dead tasks by error type, handler and HTTP status, most of them first.')
    .argument('<queue>', 'name of the queue')
    .example('ctl queue dlq groups mail', 'as a table')
    .example('ctl queue dlq groups mail --json', 'for scripts');
  withQueue(groups).action(async (name: string, flags: QueueFlags) => {
    const { showGroups } = await import('./dead-letters.js');
    await showGroups(queueApi(flags, tools), name, tools);
  });
}

function addDeadList(dlq: CtlCommand, tools: Tools): void {
  const list = dlq
    .command('list')
    .summary('List dead tasks, the latest first')
    .description('Lists dead tasks, the latest death first, with the error each died of.')
    .argument('<queue>', 'name of the queue')
    .option('--error-type <type>', 'Only those that died of this: HTTP_5XX')
    .option('--handler-ref <handler>', 'Only those of this handler')
    .option('--from <when>', 'Only those that died at this time or later, or within: 2h')
    .option('--to <when>', 'Only those that died before this time, or this long ago')
    .option('--limit <number>', 'How many at most (default: 50)')
    .option('--cursor <text>', 'Go on where the page before ended')
    .example('ctl queue dlq list mail', 'the latest 50')
    .example('ctl queue dlq list mail --from 2h --error-type TIMEOUT', 'of the last two hours')
    .example('ctl queue dlq list mail --limit 5000 --json', 'for scripts, over many pages');
  withQueue(list).action(async (name: string, flags: QueueFlags & DeadListFlags) => {
    const { listDead } = await import('./dead-letters.js');
    await listDead(queueApi(flags, tools), name, flags, tools);
  });
}

export function addRedrive(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('redrive')
    .summary('Run dead tasks again')
    .description(
      'Makes dead tasks pending again, the oldest death first, with all their attempts ahead of ' +
        'them and their history kept. Choose them by id or by a filter. A filter is counted ' +
        'first, and you are asked.',
    );
  withSelection(command)
    .option('--rate <number>', 'Start so many a second (default: 500); 0: all at once')
    .example('ctl queue redrive mail 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one task')
    .example('ctl queue redrive mail --error-type HTTP_5XX --from 2h --rate 50', 'gently')
    .example('ctl queue redrive mail --all --yes', 'everything, from a program')
    .action(async (name: string, ids: string[], flags: QueueFlags & SelectFlags) => {
      const { actOnDead } = await import('./selecting.js');
      await actOnDead(queueApi(flags, tools), { act: 'redrive', queue: name, ids, flags }, tools);
    });
}

export function addPurge(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('purge')
    .summary('Delete dead tasks for good')
    .description(
      'Deletes dead tasks for good. Choose them by id or by a filter. A filter is counted first, ' +
        'and you are asked. Their ids are kept for a day, so that a late repeat of a submit runs ' +
        'nothing.',
    );
  withSelection(command)
    .example('ctl queue purge mail 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one task')
    .example('ctl queue purge mail --http-status 404 --to 7d', 'died more than a week ago')
    .example('ctl queue purge mail --all --dry-run', 'how many would go')
    .action(async (name: string, ids: string[], flags: QueueFlags & SelectFlags) => {
      const { actOnDead } = await import('./selecting.js');
      await actOnDead(queueApi(flags, tools), { act: 'purge', queue: name, ids, flags }, tools);
    });
}

function withSelection(command: CtlCommand): CtlCommand {
  command
    .argument('<queue>', 'name of the queue')
    .argument('[ids...]', 'ids of dead tasks; - reads them from stdin')
    .option('--error-type <type>', 'Those that died of this: HTTP_5XX')
    .option('--handler-ref <handler>', 'Those of this handler')
    .option('--http-status <number>', 'Those whose last answer had this status')
    .option('--from <when>', 'Those that died at this time or later, or within: 2h')
    .option('--to <when>', 'Those that died before this time, or this long ago')
    .option('--all', 'All dead tasks of the queue')
    .option('--yes', 'Do not ask')
    .option('--dry-run', 'Only count')
    .exitCode(1, 'failure, or you said no')
    .exitCode(2, 'nobody there to ask and no --yes, or usage error');
  return withQueue(command);
}
