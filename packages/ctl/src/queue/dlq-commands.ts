import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { DeadListFlags } from './dead-letters.js';
import type { SelectFlags } from './selection.js';

export function addDlq(queue: CtlCommand, tools: Tools): void {
  const dlq = queue
    .command('dlq')
    .summary('Browse dead tasks')
    .description(
      'Browse the dead-letter queue: tasks that are not retried any more. Run them again ' +
        'with `ctl queue redrive`, delete them with `ctl queue purge`.',
    )
    .example('ctl queue dlq groups mail', 'failures by kind')
    .example('ctl queue dlq list mail --error-type HTTP_5XX', 'the tasks');
  addDeadList(dlq, tools);
  const groups = dlq
    .command('groups')
    .summary('Count dead tasks by kind of failure')
    .description('Count dead tasks by error type, handler and HTTP status, largest group first.')
    .argument('<queue>', 'name of the queue')
    .example('ctl queue dlq groups mail', 'as a table')
    .example('ctl queue dlq groups mail --json', 'for scripts');
  withQueue(groups)
    .shown(tools)
    .action(async (name: string, flags: QueueFlags) => {
      const { showGroups } = await import('./dead-letters.js');
      await showGroups(queueApi(flags, tools), name, tools);
    });
}

function addDeadList(dlq: CtlCommand, tools: Tools): void {
  const list = dlq
    .command('list')
    .summary('List dead tasks, newest first')
    .description('List dead tasks, the latest to die first, with their last error.')
    .argument('<queue>', 'name of the queue')
    .option('--error-type <type>', 'Only tasks with this error type: HTTP_5XX')
    .option('--handler-ref <handler>', 'Only tasks of this handler')
    .option('--from <when>', 'Only tasks that died since this time, or in the last: 2h')
    .option('--to <when>', 'Only tasks that died before this time, or this long ago')
    .option('--limit <number>', 'Maximum number (default: 50)')
    .option('--cursor <text>', 'Continue after the page that ended with this cursor')
    .example('ctl queue dlq list mail', 'the latest 50')
    .example('ctl queue dlq list mail --from 2h --error-type TIMEOUT', 'of the last two hours')
    .example('ctl queue dlq list mail --limit 5000 --json', 'for scripts, over many pages');
  withQueue(list)
    .shown(tools)
    .action(async (name: string, flags: QueueFlags & DeadListFlags) => {
      const { listDead } = await import('./dead-letters.js');
      await listDead(queueApi(flags, tools), name, flags, tools);
    });
}

export function addRedrive(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('redrive')
    .summary('Run dead tasks again')
    .description(
      'Make dead tasks pending again, the first to die first, with all attempts available ' +
        'and their history kept. Select them by id or by a filter. With a filter, it counts ' +
        'the tasks and asks for confirmation.',
    );
  withSelection(command)
    .option('--rate <number>', 'Tasks per second (default: 500); 0: all at once')
    .example('ctl queue redrive mail 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one task')
    .example('ctl queue redrive mail --error-type HTTP_5XX --from 2h --rate 50', 'gently')
    .example('ctl queue redrive mail --all --yes', 'everything, from a script')
    .action(async (name: string, ids: string[], flags: QueueFlags & SelectFlags) => {
      const { actOnDead } = await import('./selecting.js');
      await actOnDead(queueApi(flags, tools), { act: 'redrive', queue: name, ids, flags }, tools);
    });
}

export function addPurge(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('purge')
    .summary('Delete dead tasks permanently')
    .description(
      'Delete dead tasks permanently. Select them by id or by a filter. With a filter, it ' +
        'counts the tasks and asks for confirmation. Their ids are remembered for a day, so ' +
        'that a late retry of a submit runs nothing.',
    );
  withSelection(command)
    .example('ctl queue purge mail 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one task')
    .example('ctl queue purge mail --http-status 404 --to 7d', 'died more than a week ago')
    .example('ctl queue purge mail --all --dry-run', 'how many match')
    .action(async (name: string, ids: string[], flags: QueueFlags & SelectFlags) => {
      const { actOnDead } = await import('./selecting.js');
      await actOnDead(queueApi(flags, tools), { act: 'purge', queue: name, ids, flags }, tools);
    });
}

function withSelection(command: CtlCommand): CtlCommand {
  command
    .argument('<queue>', 'name of the queue')
    .argument('[ids...]', 'ids of dead tasks; - reads them from stdin')
    .option('--error-type <type>', 'Tasks with this error type: HTTP_5XX')
    .option('--handler-ref <handler>', 'Tasks of this handler')
    .option('--http-status <number>', 'Tasks whose last response had this HTTP status')
    .option('--from <when>', 'Tasks that died since this time, or in the last: 2h')
    .option('--to <when>', 'Tasks that died before this time, or this long ago')
    .option('--all', 'All dead tasks of the queue')
    .option('--yes', 'Do not ask for confirmation')
    .option('--dry-run', 'Only count the tasks')
    .option('--async', 'Start a job on the server and print its id')
    .exitCode(1, 'failure, or you did not confirm')
    .exitCode(2, 'no terminal to confirm on and no --yes, or usage error');
  return withQueue(command);
}
