import type { CtlCommand } from '../base/command.js';
import { addCommands } from '../base/declared.js';
import type { Tools } from '../base/tools.js';
import { commands, queueServer } from '../queue/commands.js';
import { addServe } from '../queue/serve-command.js';

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
  addCommands(queue, commands(tools), tools, queueServer(tools));
}
