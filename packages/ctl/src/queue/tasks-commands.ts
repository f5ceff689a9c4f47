import { Option } from 'commander';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import { collect } from './arguments.js';
import type { CancelFlags } from './task-changes.js';
import type { TaskListFlags } from './task-list.js';

export function addTasks(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('tasks')
    .summary('List the tasks of a queue, newest first')
    .description(
      'List the tasks of a queue in any status. A pending task says what it waits for. Show one ' +
        'with `ctl queue get`.',
    )
    .argument('<queue>', 'name of the queue')
    .option(
      '--status <status>',
      'Only tasks in this status: PENDING, IN_FLIGHT, SUCCEEDED, DEAD; may be repeated',
      collect,
    )
    .option('--handler-ref <handler>', 'Only tasks of this handler')
    .option('--group-key <key>', 'Only tasks with this group key')
    .option('--from <when>', 'Only tasks created since this time, or in the last: 2h')
    .option('--to <when>', 'Only tasks created before this time, or this long ago')
    .addOption(
      new Option('--order <order>', 'next: by due time, with --status PENDING').choices([
        'newest',
        'oldest',
        'next',
      ]),
    )
    .option('--limit <number>', 'Maximum number (default: 50)')
    .option('--cursor <text>', 'Continue after the page that ended with this cursor')
    .option('--count', 'Only count the tasks')
    .option('--watch', 'Refresh until you press Ctrl-C')
    .option('--interval <duration>', 'Time between two refreshes (default: 2s)')
    .example('ctl queue tasks mail', 'the latest 50')
    .example('ctl queue tasks mail --status PENDING --order next', 'what runs next')
    .example('ctl queue tasks mail --status IN_FLIGHT --watch', 'what runs now')
    .example('ctl queue tasks mail --handler-ref mail.send --from 1h --count', 'how many');
  withQueue(command).action(async (name: string, flags: QueueFlags & TaskListFlags) => {
    const { listTasks } = await import('./task-list.js');
    await listTasks(queueApi(flags, tools), name, flags, tools);
  });
}

export function addCancel(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('cancel')
    .summary('Cancel tasks')
    .description(
      'Cancel tasks that have not ended: they become dead with the reason CANCELLED, and a ' +
        'running callback is aborted. Name tasks by id, or select pending tasks of a queue by a ' +
        'filter, for which it asks for confirmation. Run cancelled tasks again with ' +
        '`ctl queue redrive`.',
    )
    .argument('[ids...]', 'ids of tasks; - reads them from stdin')
    .option('--reason <text>', 'Kept with the task and in the audit log')
    .option('--queue <queue>', 'Select pending tasks of this queue by the options below')
    .option('--handler-ref <handler>', 'Tasks of this handler')
    .option('--group-key <key>', 'Tasks with this group key')
    .option('--from <when>', 'Tasks created since this time, or in the last: 2h')
    .option('--to <when>', 'Tasks created before this time, or this long ago')
    .option('--all', 'All pending tasks of the queue')
    .option('--yes', 'Do not ask for confirmation')
    .option('--dry-run', 'Only count the tasks of the filter')
    .example('ctl queue cancel 01JD3Z8Q4M7X2N5V9RTBKWCH6E --reason withdrawn', 'one task')
    .example('ctl queue cancel --queue mail --handler-ref mail.send', 'pending ones by handler')
    .example('ctl queue cancel --queue mail --all --yes', 'all that wait, from a script')
    .exitCode(1, 'failure, or you did not confirm')
    .exitCode(2, 'no terminal to confirm on and no --yes, or usage error');
  withQueue(command).action(async (ids: string[], flags: QueueFlags & CancelFlags) => {
    const { cancelTasks } = await import('./task-changes.js');
    await cancelTasks(queueApi(flags, tools), ids, flags, tools);
  });
}

export function addRunNow(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('run-now')
    .summary('Make waiting tasks due')
    .description(
      'Make pending tasks due that wait for a later time or a retry. Limits, pause and order of ' +
        'the queue still apply.',
    )
    .argument('<ids...>', 'ids of tasks; - reads them from stdin')
    .example('ctl queue run-now 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one task')
    .exitCode(1, 'failure, or a task is not pending');
  withQueue(command).action(async (ids: string[], flags: QueueFlags) => {
    const { runNow } = await import('./task-changes.js');
    await runNow(queueApi(flags, tools), ids, tools);
  });
}
