import type { CtlCommand } from '../base/command.js';
import { addAudit } from '../queue/audit-commands.js';
import { addConfig } from '../queue/config-commands.js';
import { addCreate } from '../queue/create-command.js';
import { addDlq, addPurge, addRedrive } from '../queue/dlq-commands.js';
import { addJob } from '../queue/job-commands.js';
import { addMigrate } from '../queue/migrate-command.js';
import {
  addDelete,
  addList,
  addPause,
  addResume,
  addStats,
  addTest,
  addWatch,
} from '../queue/queue-commands.js';
import { addSchedule } from '../queue/schedule-commands.js';
import { addSecret } from '../queue/secret-commands.js';
import { addServe } from '../queue/serve-command.js';
import { addGet, addSubmit } from '../queue/task-commands.js';
import { addCancel, addRunNow, addTasks } from '../queue/tasks-commands.js';
import { addToken } from '../queue/token-commands.js';
import { addWork, addWorkers } from '../queue/work-commands.js';
import { addTop } from '../queue/top-command.js';
import type { Tools } from '../base/tools.js';

export async function build(queue: CtlCommand, tools: Tools): Promise<void> {
  queue
    .description(
      'Run the queue server, and manage its queues and tasks. Commands find the server by ' +
        '--url, by MILLRACE_QUEUE_URL, or at 127.0.0.1:8081, and send the token from ' +
        '--token-file or MILLRACE_QUEUE_TOKEN. With --json, commands print the response of ' +
        'the REST API.',
    )
    .example('ctl queue serve --config queue.yaml', 'start a server')
    .example('ctl queue config set mail mail.yaml', 'create a queue')
    .example(`ctl queue submit mail mail.send --payload '{"to":"ada"}' --wait`, 'run a task');
  await addServe(queue, tools);
  addToken(queue, tools);
  addSecret(queue, tools);
  addCreate(queue, tools);
  addConfig(queue, tools);
  addTest(queue, tools);
  addSubmit(queue, tools);
  addGet(queue, tools);
  addTasks(queue, tools);
  addCancel(queue, tools);
  addRunNow(queue, tools);
  addList(queue, tools);
  addStats(queue, tools);
  addWatch(queue, tools);
  addTop(queue, tools);
  addDlq(queue, tools);
  addRedrive(queue, tools);
  addPurge(queue, tools);
  addJob(queue, tools);
  addSchedule(queue, tools);
  addPause(queue, tools);
  addResume(queue, tools);
  addWork(queue, tools);
  addWorkers(queue, tools);
  addDelete(queue, tools);
  addAudit(queue, tools);
  addMigrate(queue, tools);
}
