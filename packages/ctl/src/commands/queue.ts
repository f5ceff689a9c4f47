import type { CtlCommand } from '../base/command.js';
import { addCommands } from '../base/declared.js';
import type { Tools } from '../base/tools.js';
import { commands, queueServer } from '../queue/commands.js';
import { addServe } from '../base/serve-command.js';

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
  await addServe(queue, tools, {
    summary: 'Run the queue server',
    description:
      'Serve the queue over REST and call handlers until Ctrl-C, which waits for requests ' +
      'and callbacks in flight. Every setting can come from a file (--config queue.yaml), ' +
      'a variable or a flag. Prints one line of JSON for each listener when it is ready; ' +
      'logs go to stderr.',
    examples: [
      ['ctl queue serve --tokens-file tokens.yaml', 'on 127.0.0.1:8081, data in ./data'],
      ['ctl queue serve --config queue.yaml --data /srv/queue', 'with a config file'],
      ['ctl queue serve --config queue.yaml --listen 127.0.0.1:0', 'on any free port'],
    ],
    config: async () => (await import('@millrace/queue/config')).queueConfig,
    serve: async () => (await import('@millrace/queue/serve')).runQueue,
    defaultText: ({ default: text = '' }) => (text === '[]' ? '' : text),
    minWidthToWrap: 30,
  });
  addCommands(queue, commands(tools), tools, queueServer(tools));
}
