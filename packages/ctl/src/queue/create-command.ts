import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi } from './api.js';
import type { CreateFlags } from './creating.js';

interface Flags extends CreateFlags {
  server?: string;
  tokenFile?: string;
}

export function addCreate(queue: CtlCommand, tools: Tools): void {
  queue
    .command('create')
    .summary('Create a queue')
    .description(
      'Create a queue with a minimal config: --pull for workers, or --url for callbacks. If the ' +
        'server runs on this machine and does not allow the URL yet, add it to the allowlist in ' +
        'the config file of the server, which reloads it.',
    )
    .argument('<queue>', 'name of the queue')
    .option(
      '--url <url>',
      'Callback that the server calls for each task; http, https, grpc or grpcs',
    )
    .option('--pull', 'Let workers ask for tasks')
    .option('--config <file>', 'Config file of the server (default: that of `ctl up`)')
    .option(
      '--server <url>',
      'Address of the server (default: $MILLRACE_QUEUE_URL, or 127.0.0.1:8081)',
    )
    .option('--token-file <file>', 'File with the bearer token (default: $MILLRACE_QUEUE_TOKEN)')
    .example('ctl queue create mail --pull', 'for `ctl queue work mail` and SDK workers')
    .example('ctl queue create mail --url http://127.0.0.1:9000/run', 'with a callback')
    .exitCode(1, 'it exists, or failure')
    .action(async (name: string, { server, tokenFile, ...flags }: Flags) => {
      const place = {
        ...(server !== undefined && { url: server }),
        ...(tokenFile !== undefined && { tokenFile }),
      };
      const { createQueue } = await import('./creating.js');
      await createQueue(queueApi(place, tools), { name, flags }, tools);
    });
}
