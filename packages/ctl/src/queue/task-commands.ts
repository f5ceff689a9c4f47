import type { CodeCommand, Commands } from '../base/declared.js';
import { withQueue } from './api.js';

export const taskCommands: Commands = {
  submit: {
    summary: 'Submit a task, or a file of tasks',
    description:
      'Submit a task, which the server then delivers to its handler. Without --id the task ' +
      'gets a generated id, so that a request whose response was lost is repeated safely. ' +
      'With --batch, each line of the file is a task as in the REST API.',
    arguments: [
      ['<queue>', 'name of the queue'],
      ['[handler]', 'handler_ref: the handler that runs it'],
      ['[stdin]', '- reads the payload from stdin'],
    ],
    options: [
      ['--payload <text>', 'Payload as text'],
      ['--file <file>', 'Payload from this file'],
      [
        '--content-type <type>',
        'Media type of the payload (default: application/json for a --payload that is a JSON object or list)',
      ],
      ['--header <name: value>', 'Header for the handler; may be repeated', { repeats: true }],
      ['--id <ulid>', 'Id of the task; repeating the command with the same id stores nothing new'],
      ['--delay <duration>', 'Not before this much time has passed: 15m'],
      ['--at <time>', 'Not before this time: 2030-01-31T08:00:00Z'],
      ['--priority <number>', '0 to 9, higher first (default: 4)'],
      ['--group <key>', 'Group key: groups take turns, or run in order'],
      ['--unique-key <key>', 'Store nothing while another task of the queue holds this key'],
      ['--debounce <duration>', 'Run this long after the last submit with the unique key'],
      [
        '--label <label>',
        'Only workers with this label get it; may be repeated',
        { repeats: true },
      ],
      ['--max-attempts <number>', 'Attempts before the task is dead'],
      [
        '--backoff <kind:delay>',
        'Delay between attempts: fixed:30s, or exponential:1s, which doubles',
      ],
      ['--attempt-timeout <duration>', 'How long an attempt may take'],
      ['--retain <duration>', 'How long the task is kept after its end'],
      ['--expires-at <when>', 'Give up after this long, or at this time: 1h'],
      [
        '--depends-on <id>',
        'Run after this task has succeeded, or with ID:end has ended; may be repeated',
        { repeats: true },
      ],
      ['--batch <file>', 'Submit every line of this file; - for stdin'],
      ['--wait', 'Wait until the task has succeeded or is dead'],
      ['--timeout <duration>', 'Stop waiting after this long'],
    ],
    examples: [
      [`ctl queue submit mail mail.send --payload '{"to":"ada"}'`, 'with a payload'],
      ['ctl queue submit mail mail.send - --wait < letter.txt', 'all of stdin'],
      ['ctl queue submit mail --batch tasks.jsonl', 'many at once'],
    ],
    exitCodes: {
      0: 'stored; with --wait, succeeded',
      1: 'rejected; with --wait, dead; with --batch, some rejected',
    },
    run: async () => (await import('./submitting.js')).submit,
  },
  get: {
    summary: 'Show a task, its attempts and why it waits',
    description:
      'Show a task in any status: why it waits, the result of each attempt, its payload.',
    arguments: [['<id>', 'id of the task']],
    options: [
      ['--payload', 'Print only the payload; control characters are escaped on a terminal'],
      ['--raw', 'With --payload: print the raw bytes, even on a terminal'],
    ],
    examples: [
      ['ctl queue get 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'as text'],
      ['ctl queue get 01JD3Z8Q4M7X2N5V9RTBKWCH6E --payload > body', 'its payload'],
      ['ctl queue get 01JD3Z8Q4M7X2N5V9RTBKWCH6E --json', 'the response of the REST API'],
    ],
    exitCodes: { 1: 'no such task, or failure' },
    run: async () => (await import('./task-view.js')).showTask,
  },
  tasks: {
    summary: 'List the tasks of a queue, newest first',
    description:
      'List the tasks of a queue in any status. A pending task says what it waits for. Show one ' +
      'with `ctl queue get`.',
    arguments: [['<queue>', 'name of the queue']],
    options: [
      [
        '--status <status>',
        'Only tasks in this status: PENDING, IN_FLIGHT, SUCCEEDED, DEAD; may be repeated',
        { repeats: true },
      ],
      ['--handler-ref <handler>', 'Only tasks of this handler'],
      ['--group-key <key>', 'Only tasks with this group key'],
      ['--from <when>', 'Only tasks created since this time, or in the last: 2h'],
      ['--to <when>', 'Only tasks created before this time, or this long ago'],
      [
        '--order <order>',
        'next: by due time, with --status PENDING',
        { choices: ['newest', 'oldest', 'next'] },
      ],
      ['--limit <number>', 'Maximum number (default: 50)'],
      ['--cursor <text>', 'Continue after the page that ended with this cursor'],
      ['--count', 'Only count the tasks'],
      ['--watch', 'Refresh until you press Ctrl-C'],
      ['--interval <duration>', 'Time between two refreshes (default: 2s)'],
    ],
    examples: [
      ['ctl queue tasks mail', 'the latest 50'],
      ['ctl queue tasks mail --status PENDING --order next', 'what runs next'],
      ['ctl queue tasks mail --status IN_FLIGHT --watch', 'what runs now'],
      ['ctl queue tasks mail --handler-ref mail.send --from 1h --count', 'how many'],
    ],
    run: async () => (await import('./task-list.js')).listTasks,
  },
  tree: {
    summary: 'Show a task with its children',
    description: 'Show a task with the tasks that its handler submitted, and their steps.',
    arguments: [['<id>', 'id of the task']],
    examples: [
      ['ctl queue tree 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'as a tree'],
      ['ctl queue tree 01JD3Z8Q4M7X2N5V9RTBKWCH6E --json', 'the response of the REST API'],
    ],
    exitCodes: { 1: 'no such task, or failure' },
    run: async () => (await import('./flow-commands.js')).showTree,
  },
  signal: {
    summary: 'Send a signal to a task',
    description:
      'Send a signal to a task, which wakes it if it is suspended on the name, and else waits ' +
      'for it. A signal with an id that was sent before changes nothing.',
    arguments: [
      ['<id>', 'id of the task'],
      ['<name>', 'name of the signal'],
      ['[payload]', 'JSON that the signal carries'],
    ],
    options: [['--signal-id <text>', 'Id of the signal; repeating it sends nothing new']],
    examples: [
      ['ctl queue signal 01JD3Z8Q4M7X2N5V9RTBKWCH6E approved', 'say yes'],
      [`ctl queue signal 01JD3Z8Q4M7X2N5V9RTBKWCH6E approved '{"by":"ada"}'`, 'with a payload'],
    ],
    exitCodes: { 1: 'the task has ended or does not exist, or failure' },
    run: async () => (await import('./flow-commands.js')).sendSignal,
  },
  cancel: {
    summary: 'Cancel tasks',
    description:
      'Cancel tasks that have not ended: they become dead with the reason CANCELLED, and a ' +
      'running callback is aborted. Name tasks by id, or select pending tasks of a queue by a ' +
      'filter, for which it asks for confirmation. Run cancelled tasks again with ' +
      '`ctl queue redrive`.',
    arguments: [['[ids...]', 'ids of tasks; - reads them from stdin']],
    options: [
      ['--reason <text>', 'Kept with the task and in the audit log'],
      ['--queue <queue>', 'Select pending tasks of this queue by the options below'],
      ['--handler-ref <handler>', 'Tasks of this handler'],
      ['--group-key <key>', 'Tasks with this group key'],
      ['--from <when>', 'Tasks created since this time, or in the last: 2h'],
      ['--to <when>', 'Tasks created before this time, or this long ago'],
      ['--all', 'All pending tasks of the queue'],
      ['--yes', 'Do not ask for confirmation'],
      ['--dry-run', 'Only count the tasks of the filter'],
    ],
    examples: [
      ['ctl queue cancel 01JD3Z8Q4M7X2N5V9RTBKWCH6E --reason withdrawn', 'one task'],
      ['ctl queue cancel --queue mail --handler-ref mail.send', 'pending ones by handler'],
      ['ctl queue cancel --queue mail --all --yes', 'all that wait, from a script'],
    ],
    exitCodes: {
      1: 'failure, or you did not confirm',
      2: 'no terminal to confirm on and no --yes, or usage error',
    },
    run: async () => (await import('./task-changes.js')).cancelTasks,
  },
  update: {
    summary: 'Change a pending task',
    description:
      'Change the priority, the time or the payload of a task that is pending. A task that runs ' +
      'or has ended is refused.',
    arguments: [['<id>', 'id of the task']],
    options: [
      ['--priority <number>', '0 to 9, higher first'],
      ['--delay <duration>', 'Not before this much time has passed: 15m'],
      ['--at <time>', 'Not before this time: 2030-01-31T08:00:00Z'],
      ['--payload <text>', 'New payload as text'],
      ['--file <file>', 'New payload from this file; - for stdin'],
      ['--content-type <type>', 'Media type of the new payload'],
    ],
    examples: [
      ['ctl queue update 01JD3Z8Q4M7X2N5V9RTBKWCH6E --priority 9', 'run it sooner'],
      ['ctl queue update 01JD3Z8Q4M7X2N5V9RTBKWCH6E --file new.json', 'with another payload'],
    ],
    exitCodes: { 1: 'failure, or the task is not pending' },
    run: async () => (await import('./task-changes.js')).updateTask,
  },
  'run-now': {
    summary: 'Make waiting tasks due',
    description:
      'Make pending tasks due that wait for a later time or a retry. Limits, pause and order of ' +
      'the queue still apply.',
    arguments: [['<ids...>', 'ids of tasks; - reads them from stdin']],
    examples: [['ctl queue run-now 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one task']],
    exitCodes: { 1: 'failure, or a task is not pending' },
    run: async () => (await import('./task-changes.js')).runNow,
  },
};

/** What `redrive` and `purge` take. */
const selection = {
  arguments: [
    ['<queue>', 'name of the queue'],
    ['[ids...]', 'ids of dead tasks; - reads them from stdin'],
  ],
  options: [
    ['--error-type <type>', 'Tasks with this error type: HTTP_5XX'],
    ['--handler-ref <handler>', 'Tasks of this handler'],
    ['--http-status <number>', 'Tasks whose last response had this HTTP status'],
    ['--from <when>', 'Tasks that died since this time, or in the last: 2h'],
    ['--to <when>', 'Tasks that died before this time, or this long ago'],
    ['--all', 'All dead tasks of the queue'],
    ['--yes', 'Do not ask for confirmation'],
    ['--dry-run', 'Only count the tasks'],
    ['--async', 'Start a job on the server and print its id'],
  ],
  exitCodes: {
    1: 'failure, or you did not confirm',
    2: 'no terminal to confirm on and no --yes, or usage error',
  },
} as const satisfies Partial<CodeCommand>;

/** The commands that change dead tasks. */
export const deadActions: Commands = {
  redrive: {
    ...selection,
    summary: 'Run dead tasks again',
    description:
      'Make dead tasks pending again, the first to die first, with all attempts available ' +
      'and their history kept. Select them by id or by a filter. With a filter, it counts ' +
      'the tasks and asks for confirmation.',
    connect: (command) =>
      withQueue(command)
        .option('--rate <number>', 'Tasks per second (default: 500); 0: all at once')
        .option('--from-step <name>', 'Drop this recorded step and those after it')
        .option('--reset-steps', 'Drop all recorded steps')
        .option('--no-dependents', 'Leave the tasks that died of these as they are'),
    examples: [
      ['ctl queue redrive mail 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one task'],
      ['ctl queue redrive mail --error-type HTTP_5XX --from 2h --rate 50', 'gently'],
      ['ctl queue redrive mail --all --yes', 'everything, from a script'],
    ],
    run: async () => (await import('./selecting.js')).redrive,
  },
  purge: {
    ...selection,
    summary: 'Delete dead tasks permanently',
    description:
      'Delete dead tasks permanently. Select them by id or by a filter. With a filter, it ' +
      'counts the tasks and asks for confirmation. Their ids are remembered for a day, so ' +
      'that a late retry of a submit runs nothing.',
    examples: [
      ['ctl queue purge mail 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one task'],
      ['ctl queue purge mail --http-status 404 --to 7d', 'died more than a week ago'],
      ['ctl queue purge mail --all --dry-run', 'how many match'],
    ],
    run: async () => (await import('./selecting.js')).purge,
  },
};
