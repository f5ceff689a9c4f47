import type { TopCommand } from '../base/groups.js';
import { commands, queueServer } from '../queue/commands.js';

export const top: Readonly<Record<string, TopCommand>> = {
  queue: {
    server: queueServer,
    description:
      'Run the queue server, and manage its queues and tasks. Commands find the server by ' +
      '--url, by MILLRACE_QUEUE_URL, or at 127.0.0.1:8081, and send the token from ' +
      '--token-file or MILLRACE_QUEUE_TOKEN. With --json, commands print the response of ' +
      'the REST API.',
    examples: [
      ['ctl queue serve --config queue.yaml', 'start a server'],
      ['ctl queue config set mail mail.yaml', 'create a queue'],
      [`ctl queue submit mail mail.send --payload '{"to":"ada"}' --wait`, 'run a task'],
    ],
    serve: {
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
    },
    commands: commands,
  },
};
