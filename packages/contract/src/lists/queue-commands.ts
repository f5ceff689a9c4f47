/** The commands on the lists of the queue that call one operation. */
import {
  counted,
  type Facts,
  queueCommand,
  rowsOf,
  type CommandGroup,
  type OperationCommand,
} from './list.js';
import {
  audit,
  breakerText,
  deadGroups,
  deadTasks,
  jobFacts,
  jobs,
  moreText,
  nextRunText,
  probeFacts,
  queues,
  queueState,
  schedules,
  workers,
} from './queue.js';

const queueArgument = ['<queue>', 'name of the queue'] as const;
const nameArgument = ['<name>', 'name of the schedule'] as const;
const jobArgument = ['<id>', 'id of the job'] as const;

/** Commands of `ctl queue` on one queue. */
export const queueCommands = {
  list: queueCommand({
    operation: 'listQueues',
    alias: 'ls',
    summary: 'List queues and their task counts',
    description: 'List the queues that you administer, with their pending, running and dead tasks.',
    examples: [
      ['ctl queue list', 'as a table'],
      ['ctl queue list --json', 'the response of the REST API'],
    ],
    isView: true,
    shows: (answer) => rowsOf(queues, answer),
  }),
  stats: queueCommand({
    operation: 'getStats',
    path: ['queue'],
    summary: 'Count the tasks of a queue',
    description:
      'Count pending, running and dead tasks, and show the age of the oldest pending one.',
    arguments: [queueArgument],
    examples: [
      ['ctl queue stats mail', 'at a glance'],
      ['ctl queue stats mail --json', 'for scripts'],
    ],
    isView: true,
    shows: (stats, [queue]) => ({
      facts: [
        ['queue', queue!],
        ['state', queueState({ ...stats, paused: stats.state === 'paused' })],
        ['pending', String(stats.pending)],
        ['delayed', String(stats.delayed ?? 0)],
        ['in flight', String(stats.in_flight)],
        ['dlq', stats.dlq_depth === 0 ? '0' : { text: String(stats.dlq_depth), tone: 'bad' }],
        ['oldest', { ms: stats.oldest_pending_age_ms, none: '-' }],
        ['rate/s', String(stats.rate_per_second)],
        ['succeeded', String(stats.succeeded_total)],
        ['failed', String(stats.failed_total)],
        ['died', String(stats.dead_total)],
        ...(stats.breakers ?? []).map((breaker): Facts[number] => [
          `breaker ${breaker.handler_ref}`,
          breakerText(breaker),
        ]),
      ],
    }),
  }),
  pause: queueCommand({
    operation: 'pauseQueue',
    path: ['queue'],
    summary: 'Pause delivery of a queue',
    description:
      'Pause delivery of a queue until it is resumed, also across restarts. Running tasks ' +
      'finish; new tasks are accepted and stored.',
    arguments: [queueArgument],
    examples: [['ctl queue pause mail', 'until `ctl queue resume mail`']],
    shows: (_, [queue]) => `Paused ${queue}: new tasks are stored and not delivered.`,
    json: ([queue]) => ({ queue, paused: true }),
  }),
  resume: queueCommand({
    operation: 'resumeQueue',
    path: ['queue'],
    summary: 'Resume delivery of a queue',
    description: 'Resume delivery of a paused queue.',
    arguments: [queueArgument],
    examples: [['ctl queue resume mail', 'resume it']],
    shows: (_, [queue]) => `Resumed ${queue}.`,
    json: ([queue]) => ({ queue, paused: false }),
  }),
  delete: queueCommand({
    operation: 'deleteQueue',
    path: ['queue'],
    summary: 'Delete an empty queue and its config',
    description:
      'Delete a queue with its config and succeeded tasks. Fails while it has pending, ' +
      'running or dead tasks.',
    arguments: [queueArgument],
    examples: [['ctl queue delete mail', 'if it is empty']],
    shows: (_, [queue]) => `Deleted ${queue}.`,
    json: ([deleted]) => ({ deleted }),
  }),
  test: queueCommand({
    operation: 'testCallback',
    path: ['queue'],
    summary: 'Send a test request to the callback of a queue',
    description:
      'Send one test request to the callback, with the auth, signature and timeouts of a ' +
      'task, and show the response. No task is stored.',
    arguments: [queueArgument],
    examples: [['ctl queue test mail', 'does the handler respond?']],
    exitCodes: { 0: 'the handler accepted it', 1: 'it did not, or failure' },
    // A callback may take half an hour, the maximum of a config.
    patienceMs: 1_830_000,
    isFailure: ({ delivered }) => !delivered,
    shows: (result) => ({ facts: probeFacts(result) }),
  }),
  workers: queueCommand({
    operation: 'listWorkers',
    path: ['queue'],
    summary: 'List the workers of a pull queue',
    description: 'List the workers that were seen in the last 10 minutes, and what they did.',
    arguments: [queueArgument],
    examples: [
      ['ctl queue workers mail', 'as a table'],
      ['ctl queue workers mail --json', 'the response of the REST API'],
    ],
    isView: true,
    shows: (answer, [queue]) =>
      answer.workers.length === 0
        ? `No worker of ${queue} was seen in the last 10 minutes.`
        : rowsOf(workers, answer.workers),
  }),
};

export const deadCommands = {
  summary: 'Browse dead tasks',
  description:
    'Browse the dead-letter queue: tasks that are not retried any more. Run them again ' +
    'with `ctl queue redrive`, delete them with `ctl queue purge`.',
  examples: [
    ['ctl queue dlq groups mail', 'failures by kind'],
    ['ctl queue dlq list mail --error-type HTTP_5XX', 'the tasks'],
  ],
  commands: {
    list: queueCommand({
      operation: 'listDlq',
      path: ['queue'],
      summary: 'List dead tasks, newest first',
      description: 'List dead tasks, the latest to die first, with their last error.',
      arguments: [queueArgument],
      options: [
        [
          '--error-type <type>',
          'Only tasks with this error type: HTTP_5XX',
          { query: 'error_type' },
        ],
        ['--handler-ref <handler>', 'Only tasks of this handler', { query: 'handler_ref' }],
        [
          '--from <when>',
          'Only tasks that died since this time, or in the last: 2h',
          { query: 'from', isMoment: true },
        ],
        [
          '--to <when>',
          'Only tasks that died before this time, or this long ago',
          { query: 'to', isMoment: true },
        ],
        ['--limit <number>', 'Maximum number (default: 50)'],
        ['--cursor <text>', 'Continue after the page that ended with this cursor'],
      ],
      examples: [
        ['ctl queue dlq list mail', 'the latest 50'],
        ['ctl queue dlq list mail --from 2h --error-type TIMEOUT', 'of the last two hours'],
        ['ctl queue dlq list mail --limit 5000 --json', 'for scripts, over many pages'],
      ],
      isView: true,
      pages: { member: 'tasks', limit: 50 },
      shows: (page) => rowsOf(deadTasks, page.tasks, moreText(page.next_cursor)),
    }),
    groups: queueCommand({
      operation: 'listDlqGroups',
      path: ['queue'],
      summary: 'Count dead tasks by kind of failure',
      description: 'Count dead tasks by error type, handler and HTTP status, largest group first.',
      arguments: [queueArgument],
      examples: [
        ['ctl queue dlq groups mail', 'as a table'],
        ['ctl queue dlq groups mail --json', 'for scripts'],
      ],
      isView: true,
      shows: ({ groups }) => rowsOf(deadGroups, groups),
    }),
  },
} satisfies CommandGroup;

export const jobCommands = {
  summary: 'Follow redrives and purges that run on the server',
  description:
    'Follow jobs: redrives and purges that were started with --async. They go on after a ' +
    'restart of the server.',
  examples: [
    ['ctl queue purge mail --all --yes --async', 'start one'],
    ['ctl queue job list mail', 'how far are they?'],
  ],
  commands: {
    list: queueCommand({
      operation: 'listJobs',
      path: ['queue'],
      alias: 'ls',
      summary: 'List the jobs of a queue',
      description: 'List the jobs that run, and those that ended in the last week, newest first.',
      arguments: [queueArgument],
      examples: [
        ['ctl queue job list mail', 'as a table'],
        ['ctl queue job list mail --json', 'for scripts'],
      ],
      isView: true,
      shows: (answer) => rowsOf(jobs, answer.jobs),
    }),
    get: queueCommand({
      operation: 'getJob',
      path: ['id'],
      summary: 'Show a job',
      description: 'Show the status of a job and how many tasks it has changed.',
      arguments: [jobArgument],
      examples: [['ctl queue job get 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one job']],
      isView: true,
      shows: ({ job }) => ({ facts: jobFacts(job) }),
    }),
    cancel: queueCommand({
      operation: 'cancelJob',
      path: ['id'],
      summary: 'Cancel a job',
      description: 'Cancel a job. Tasks that it has changed stay changed.',
      arguments: [jobArgument],
      examples: [['ctl queue job cancel 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'stop it']],
      shows: ({ job }) => `Cancelled; the ${job.action} had changed ${counted(job.count, 'task')}.`,
    }),
  },
} satisfies CommandGroup;

const scheduleExample = (verb: string, note: string) =>
  [[`ctl queue schedule ${verb} mail digest`, note]] as const;

/** The commands on schedules that come before and after `set`, which is code. */
export const scheduleCommands = {
  summary: 'Submit tasks by the clock',
  description:
    'Manage the schedules of a queue: a cron expression or an interval, and the task to ' +
    'submit each time.',
  examples: [
    ["ctl queue schedule set mail digest --cron '0 9 * * *' --handler mail.digest", 'daily'],
    ['ctl queue schedule list mail', 'next and last runs'],
  ],
  commands: {
    list: queueCommand({
      operation: 'listSchedules',
      path: ['queue'],
      alias: 'ls',
      summary: 'List the schedules of a queue',
      description: 'List the schedules of a queue with their next and last runs.',
      arguments: [queueArgument],
      examples: [
        ['ctl queue schedule list mail', 'as a table'],
        ['ctl queue schedule list mail --json', 'for scripts'],
      ],
      isView: true,
      pages: { member: 'schedules' },
      shows: (answer) => rowsOf(schedules, answer.schedules),
    }),
    remove: queueCommand({
      operation: 'deleteSchedule',
      path: ['queue', 'schedule'],
      alias: 'rm',
      summary: 'Delete a schedule',
      description: 'Delete a schedule. Tasks that it submitted stay.',
      arguments: [queueArgument, nameArgument],
      examples: scheduleExample('remove', 'delete it'),
      shows: (_, [, name]) => `Deleted ${name}.`,
      json: ([, deleted]) => ({ deleted }),
    }),
    'run-now': queueCommand({
      operation: 'runSchedule',
      path: ['queue', 'schedule'],
      summary: 'Submit the task of a schedule now',
      description:
        'Submit the task of a schedule now, also while the schedule is paused or an earlier task ' +
        'runs. The next run stays as it is.',
      arguments: [queueArgument, nameArgument],
      examples: scheduleExample('run-now', 'besides its regular runs'),
      shows: (schedule) => `Submitted ${schedule.last_task_id}.`,
    }),
    pause: queueCommand({
      operation: 'pauseSchedule',
      path: ['queue', 'schedule'],
      summary: 'Pause a schedule',
      description: 'Pause a schedule: it submits no task until it is resumed.',
      arguments: [queueArgument, nameArgument],
      examples: scheduleExample('pause', 'until `ctl queue schedule resume mail digest`'),
      shows: (schedule, [, name]) => nextRunText({ ...schedule, name: name! }),
    }),
    resume: queueCommand({
      operation: 'resumeSchedule',
      path: ['queue', 'schedule'],
      summary: 'Resume a schedule',
      description: 'Resume a paused schedule. Runs that were missed are not caught up.',
      arguments: [queueArgument, nameArgument],
      examples: scheduleExample('resume', 'resume it'),
      shows: (schedule, [, name]) => nextRunText({ ...schedule, name: name! }),
    }),
  },
} satisfies CommandGroup;

/** The first command is `audit list`; `verify` is code. */
export const auditList: OperationCommand = queueCommand({
  operation: 'listAudit',
  summary: 'List audit records, newest first',
  description: 'List the audit records of queues that you administer, newest first.',
  options: [
    ['--queue <name>', 'Only records of this queue', { query: 'queue' }],
    [
      '--from <when>',
      'Only records since this time, or in the last: 2h',
      { query: 'from', isMoment: true },
    ],
    [
      '--to <when>',
      'Only records before this time, or this long ago',
      { query: 'to', isMoment: true },
    ],
    ['--limit <number>', 'Maximum number (default: 50)'],
  ],
  examples: [
    ['ctl queue audit list --from 24h', 'the last day'],
    ['ctl queue audit list --queue mail --json', 'for scripts'],
  ],
  isView: true,
  pages: { member: 'records', limit: 50 },
  shows: ({ records }) => rowsOf(audit, records),
  json: (_, { records }) => ({ records }),
});
