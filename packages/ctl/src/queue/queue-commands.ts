import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { WatchFlags } from './watching.js';

export function addList(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('list')
    .alias('ls')
    .summary('List queues and their task counts')
    .description('List the queues that you administer, with their pending, running and dead tasks.')
    .example('ctl queue list', 'as a table')
    .example('ctl queue list --json', 'the response of the REST API');
  withQueue(command)
    .shown(tools)
    .action(async (flags: QueueFlags) => {
      const { listQueues } = await import('./queues.js');
      await listQueues(queueApi(flags, tools), tools);
    });
}

export function addStats(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('stats')
    .summary('Count the tasks of a queue')
    .description(
      'Count pending, running and dead tasks, and show the age of the oldest pending one.',
    )
    .argument('<queue>', 'name of the queue')
    .example('ctl queue stats mail', 'at a glance')
    .example('ctl queue stats mail --json', 'for scripts');
  withQueue(command)
    .shown(tools)
    .action(async (name: string, flags: QueueFlags) => {
      const { showStats } = await import('./queues.js');
      await showStats(queueApi(flags, tools), name, tools);
    });
}

export function addPause(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('pause')
    .summary('Pause delivery of a queue')
    .description(
      'Pause delivery of a queue until it is resumed, also across restarts. Running tasks ' +
        'finish; new tasks are accepted and stored.',
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
    .summary('Resume delivery of a queue')
    .description('Resume delivery of a paused queue.')
    .argument('<queue>', 'name of the queue')
    .example('ctl queue resume mail', 'resume it');
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
      'Delete a queue with its config and succeeded tasks. Fails while it has pending, ' +
        'running or dead tasks.',
    )
    .argument('<queue>', 'name of the queue')
    .example('ctl queue delete mail', 'if it is empty');
  withQueue(command).action(async (name: string, flags: QueueFlags) => {
    const { deleteQueue } = await import('./queues.js');
    await deleteQueue(queueApi(flags, tools), name, tools);
  });
}

export function addTest(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('test')
    .summary('Send a test request to the callback of a queue')
    .description(
      'Send one test request to the callback, with the auth, signature and timeouts of a ' +
        'task, and show the response. No task is stored.',
    )
    .argument('<queue>', 'name of the queue')
    .example('ctl queue test mail', 'does the handler respond?')
    .exitCode(0, 'the handler accepted it')
    .exitCode(1, 'it did not, or failure');
  withQueue(command).action(async (name: string, flags: QueueFlags) => {
    const { testCallback } = await import('./queues.js');
    await testCallback(queueApi(flags, tools), name, tools);
  });
}

export function addWatch(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('watch')
    .summary('Watch queues live')
    .description(
      'Show the queues, redrawn every second until Ctrl-C. The rate is callbacks per ' +
        'second, from the metrics listener of the server; without metrics it is the growth ' +
        'of the backlog per second. Without a terminal, print one table, or with --json one ' +
        'line per interval.',
    )
    .argument('[queues...]', 'only these (default: all that you administer)')
    .option('--interval <duration>', 'Refresh interval (default: 1s)')
    .option('--count <number>', 'Exit after this many refreshes')
    .option('--metrics-url <url>', 'Metrics listener of the server')
    .example('ctl queue watch', 'all of them')
    .example('ctl queue watch mail --interval 5s', 'one, every five seconds')
    .example('ctl queue watch --json --count 60', 'a minute, for scripts');
  withQueue(command).action(async (names: string[], flags: QueueFlags & WatchFlags) => {
    const { watchQueues } = await import('./watching.js');
    await watchQueues(queueApi(flags, tools), names, flags, tools);
  });
}
