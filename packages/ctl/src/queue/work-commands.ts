import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { WorkFlags } from './working.js';

export function addWork(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('work')
    .summary('Run a command for each task of a pull queue')
    .description(
      'Claim tasks of a pull queue and run a command for each, until Ctrl-C, which waits for ' +
        'running commands. The command gets the payload on stdin and the fields of the task as ' +
        'MILLRACE_TASK_ID, MILLRACE_TASK_HANDLER_REF, MILLRACE_TASK_ATTEMPT and so on. A single ' +
        'word is run by the shell.',
    )
    .usage('[options] <queue> -- <command...>')
    .argument('<queue>', 'name of the queue')
    .argument('<command...>', 'the command, after --')
    .option('--concurrency <number>', 'Commands that run at the same time (default: 1)')
    .option('--lease <duration>', 'How long a lost worker holds a task (default: 30s)')
    .option('--handler <ref...>', 'Claim only tasks of these handlers')
    .option('--name <name>', 'Name of the worker (default: host name and process id)')
    .example('ctl queue work mail -- ./send-mail.sh', 'one task at a time')
    .example(`ctl queue work mail --concurrency 4 -- 'jq .to | xargs notify'`, 'by the shell')
    .section('Exit codes of the command:', [
      ['0', 'the task is completed'],
      ['75', 'the task is retried by the policy of the queue'],
      ['others', 'the task fails and is not retried'],
    ])
    .exitCode(0, 'stopped by Ctrl-C or SIGTERM');
  withQueue(command).action(
    async (name: string, words: string[], flags: QueueFlags & WorkFlags) => {
      const { work } = await import('./working.js');
      await work({ queue: name, command: words, flags }, tools);
    },
  );
}

export function addWorkers(queue: CtlCommand, tools: Tools): void {
  const command = queue
    .command('workers')
    .summary('List the workers of a pull queue')
    .description('List the workers that were seen in the last 10 minutes, and what they did.')
    .argument('<queue>', 'name of the queue')
    .example('ctl queue workers mail', 'as a table')
    .example('ctl queue workers mail --json', 'the response of the REST API');
  withQueue(command)
    .shown(tools)
    .action(async (name: string, flags: QueueFlags) => {
      const { listWorkers } = await import('./workers.js');
      await listWorkers(queueApi(flags, tools), name, tools);
    });
}
