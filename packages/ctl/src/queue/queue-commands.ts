import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { WatchFlags } from './watching.js';

export function addList(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('list')
    .alias('ls')
    .summary('List the queues and what is in them')
    .description('Lists the queues of which you are admin, with what waits, runs and is dead.')
    .example('ctl queue list', 'as a table')
    .example('ctl queue list --json', 'as the REST API has it');
  withQueue(command).action(async (flags: QueueFlags) => {
    const { listQueues } = await import('./queues.js');
    await listQueues(queueApi(flags, tools), tools);
  });
}

export function addStats(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('stats')
    .summary('Count the tasks of a queue')
    .description('Shows how many tasks wait, run and are dead, and how long the oldest waits.')
    .argument('<queue>', 'name of the queue')
    .example('ctl queue stats mail', 'at a glance')
    .example('ctl queue stats mail --json', 'for scripts');
  withQueue(command).action(async (name: string, flags: QueueFlags) => {
    const { showStats } = await import('./queues.js');
    await showStats(queueApi(flags, tools), name, tools);
  });
}

export function addPause(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('pause')
    .summary('Start no more tasks of a queue')
    .description(
      'Starts no task of the queue until it is resumed, also after a restart. Running ones ' +
        'finish, new ones are taken and kept.',
    )
    .argument('<queue>', 'name of the queue')
    .example('ctl queue pause mail', 'until `ctl queue resume mail`');
  withQueue(command).action(async (name: string, flags: QueueFlags) => {
    const { setPaused } = await import('./queues.js');
    await setPaused(queueApi(flags, tools), { queue: name, paused: true }, tools);
  });
}

export function addResume(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('resume')
    .summary('Start tasks of a paused queue again')
    .description('Starts the tasks of a paused queue again.')
    .argument('<queue>', 'name of the queue')
    .example('ctl queue resume mail', 'go on');
  withQueue(command).action(async (name: string, flags: QueueFlags) => {
    const { setPaused } = await import('./queues.js');
    await setPaused(queueApi(flags, tools), { queue: name, paused: false }, tools);
  });
}

export function addDelete(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('delete')
    .summary('Delete an empty queue and its config')
    .description(
      'Deletes a queue with its config and succeeded tasks. Refused while tasks of it wait, run ' +
        'or are dead.',
    )
    .argument('<queue>', 'name of the queue')
    .example('ctl queue delete mail', 'when nothing is left in it');
  withQueue(command).action(async (name: string, flags: QueueFlags) => {
    const { deleteQueue } = await import('./queues.js');
    await deleteQueue(queueApi(flags, tools), name, tools);
  });
}

export function addTest(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('test')
    .summary("Send one probe to a queue's callback")
    .description(
      'Sends one request to the callback as a task would be sent, with its auth, signature and ' +
        'time-outs, and shows what came back. No task is stored.',
    )
    .argument('<queue>', 'name of the queue')
    .example('ctl queue test mail', 'does the handler answer?')
    .exitCode(0, 'the handler took it')
    .exitCode(1, 'it did not, or failure');
  withQueue(command).action(async (name: string, flags: QueueFlags) => {
    const { testCallback } = await import('./queues.js');
    await testCallback(queueApi(flags, tools), name, tools);
  });
}

export function addWatch(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('watch')
    .summary('Watch the queues at work')
    .description(
      'Shows the queues, drawn anew every second until Ctrl-C. The rate is that of callbacks, ' +
        'from the metrics listener of the server; where that cannot be reached, of the backlog: ' +
        'what it grows or shrinks by a second. Not on a terminal: one table, or with --json a ' +
        'line for every look.',
    )
    .argument('[queues...]', 'only these (default: all of which you are admin)')
    .option('--interval <duration>', 'Look this often (default: 1s)')
    .option('--count <number>', 'End after so many looks')
    .option('--metrics-url <url>', 'Metrics listener of the server')
    .example('ctl queue watch', 'all of them')
    .example('ctl queue watch mail --interval 5s', 'one, every five seconds')
    .example('ctl queue watch --json --count 60', 'a minute, for a program');
  withQueue(command).action(async (names: string[], flags: QueueFlags & WatchFlags) => {
    const { watchQueues } = await import('./watching.js');
    await watchQueues(queueApi(flags, tools), names, flags, tools);
  });
}
