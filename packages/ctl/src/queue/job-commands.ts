import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';

export function addJob(queue: CtlCommand, tools: Tools): void {
  const job = queue
    .command('job')
    .summary('Follow redrives and purges that run on the server')
    .description(
      'Follow jobs: redrives and purges that were started with --async. They go on after a ' +
        'restart of the server.',
    )
    .example('ctl queue purge mail --all --yes --async', 'start one')
    .example('ctl queue job list mail', 'how far are they?');
  const list = job
    .command('list')
    .alias('ls')
    .summary('List the jobs of a queue')
    .description('List the jobs that run, and those that ended in the last week, newest first.')
    .argument('<queue>', 'name of the queue')
    .example('ctl queue job list mail', 'as a table')
    .example('ctl queue job list mail --json', 'for scripts');
  withQueue(list)
    .shown(tools)
    .action(async (name: string, flags: QueueFlags) => {
      const { listJobs } = await import('./jobs.js');
      await listJobs(queueApi(flags, tools), name, tools);
    });
  const get = job
    .command('get')
    .summary('Show a job')
    .description('Show the status of a job and how many tasks it has changed.')
    .argument('<id>', 'id of the job')
    .example('ctl queue job get 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'one job');
  withQueue(get)
    .shown(tools)
    .action(async (id: string, flags: QueueFlags) => {
      const { showJob } = await import('./jobs.js');
      await showJob(queueApi(flags, tools), id, tools);
    });
  const cancel = job
    .command('cancel')
    .summary('Cancel a job')
    .description('Cancel a job. Tasks that it has changed stay changed.')
    .argument('<id>', 'id of the job')
    .example('ctl queue job cancel 01JD3Z8Q4M7X2N5V9RTBKWCH6E', 'stop it');
  withQueue(cancel).action(async (id: string, flags: QueueFlags) => {
    const { cancelJob } = await import('./jobs.js');
    await cancelJob(queueApi(flags, tools), id, tools);
  });
}
