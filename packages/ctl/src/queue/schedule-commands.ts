import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { ScheduleSetFlags } from './schedules.js';

export function addSchedule(queue: CtlCommand, tools: Tools): void {
  const schedule = queue
    .command('schedule')
    .summary('Submit tasks by the clock')
    .description(
      'Manage the schedules of a queue: a cron expression or an interval, and the task to ' +
        'submit each time.',
    )
    .example("ctl queue schedule set mail digest --cron '0 9 * * *' --handler mail.digest", 'daily')
    .example('ctl queue schedule list mail', 'next and last runs');
  addScheduleList(schedule, tools);
  addScheduleGet(schedule, tools);
  addScheduleSet(schedule, tools);
  addScheduleRemove(schedule, tools);
  addAction(schedule, tools, {
    verb: 'run-now',
    summary: 'Submit the task of a schedule now',
    description:
      'Submit the task of a schedule now, also while the schedule is paused or an earlier task ' +
      'runs. The next run stays as it is.',
    example: 'besides its regular runs',
  });
  addAction(schedule, tools, {
    verb: 'pause',
    summary: 'Pause a schedule',
    description: 'Pause a schedule: it submits no task until it is resumed.',
    example: 'until `ctl queue schedule resume mail digest`',
  });
  addAction(schedule, tools, {
    verb: 'resume',
    summary: 'Resume a schedule',
    description: 'Resume a paused schedule. Runs that were missed are not caught up.',
    example: 'resume it',
  });
}

function addScheduleList(schedule: CtlCommand, tools: Tools): void {
  const list = schedule
    .command('list')
    .alias('ls')
    .summary('List the schedules of a queue')
    .description('List the schedules of a queue with their next and last runs.')
    .argument('<queue>', 'name of the queue')
    .example('ctl queue schedule list mail', 'as a table')
    .example('ctl queue schedule list mail --json', 'for scripts');
  withQueue(list)
    .shown(tools)
    .action(async (name: string, flags: QueueFlags) => {
      const { listSchedules } = await import('./schedules.js');
      await listSchedules(queueApi(flags, tools), name, tools);
    });
}

function addScheduleGet(schedule: CtlCommand, tools: Tools): void {
  const get = schedule
    .command('get')
    .summary('Show a schedule')
    .description('Show a schedule: its times, its settings, and its task with the payload.')
    .argument('<queue>', 'name of the queue')
    .argument('<name>', 'name of the schedule')
    .example('ctl queue schedule get mail digest', 'for people')
    .example('ctl queue schedule get mail digest --json', 'with the whole payload, as base64');
  withQueue(get)
    .shown(tools)
    .action(async (queue: string, name: string, flags: QueueFlags) => {
      const { showSchedule } = await import('./schedules.js');
      await showSchedule(queueApi(flags, tools), { queue, name }, tools);
    });
}

function addScheduleSet(schedule: CtlCommand, tools: Tools): void {
  const set = schedule
    .command('set')
    .summary('Create a schedule, or replace it')
    .description(
      'Write a schedule from a file, or from --cron or --every with --handler. Settings that ' +
        'are missing return to their defaults.',
    )
    .argument('<queue>', 'name of the queue')
    .argument('<name>', 'name of the schedule')
    .argument('[file]', 'YAML or JSON; - for stdin')
    .option('--cron <expression>', 'Minute, hour, day, month, weekday: "*/5 * * * *"')
    .option('--every <duration>', 'Interval, at least 1s: 30s, 5m')
    .option('--timezone <zone>', 'Time zone of --cron: Europe/Berlin (default: UTC)')
    .option('--handler <handler>', 'Handler of the task')
    .option('--payload <json>', 'Payload of the task, as JSON')
    .option('--overlap <policy>', 'While an earlier task is unfinished: skip or allow')
    .option('--catch-up <policy>', 'For runs missed while no server ran: none, last or all')
    .option('--jitter <duration>', 'Delay each task by chance, at most this long')
    .option('--description <text>', 'What it is for')
    .example('ctl queue schedule set mail digest digest.yaml', 'from a file')
    .example("ctl queue schedule set mail digest --cron '0 9 * * *' --handler digest", 'daily')
    .example('ctl queue schedule set mail poll --every 30s --handler mail.poll', 'every 30 s');
  withQueue(set).action(
    async (
      queue: string,
      name: string,
      file: string | undefined,
      flags: QueueFlags & ScheduleSetFlags,
    ) => {
      const { setSchedule } = await import('./schedules.js');
      await setSchedule(queueApi(flags, tools), { queue, name, file, flags }, tools);
    },
  );
}

function addScheduleRemove(schedule: CtlCommand, tools: Tools): void {
  const remove = schedule
    .command('remove')
    .alias('rm')
    .summary('Delete a schedule')
    .description('Delete a schedule. Tasks that it submitted stay.')
    .argument('<queue>', 'name of the queue')
    .argument('<name>', 'name of the schedule')
    .example('ctl queue schedule remove mail digest', 'delete it');
  withQueue(remove).action(async (queue: string, name: string, flags: QueueFlags) => {
    const { removeSchedule } = await import('./schedules.js');
    await removeSchedule(queueApi(flags, tools), { queue, name }, tools);
  });
}

interface Action {
  verb: 'run-now' | 'pause' | 'resume';
  summary: string;
  description: string;
  example: string;
}

function addAction(schedule: CtlCommand, tools: Tools, action: Action): void {
  const { verb, summary, description, example } = action;
  const command = schedule
    .command(verb)
    .summary(summary)
    .description(description)
    .argument('<queue>', 'name of the queue')
    .argument('<name>', 'name of the schedule')
    .example(`ctl queue schedule ${verb} mail digest`, example);
  withQueue(command).action(async (queue: string, name: string, flags: QueueFlags) => {
    const { changeSchedule } = await import('./schedules.js');
    await changeSchedule(queueApi(flags, tools), { queue, name, verb }, tools);
  });
}
