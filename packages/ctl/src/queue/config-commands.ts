import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { ConfigSetFlags } from './configs.js';

export function addConfig(queue: CtlCommand, tools: Tools): void {
  const config = queue
    .command('config')
    .summary('Read and write the config of a queue')
    .description(
      'Reads and writes the config of a queue: where its tasks go, how they are retried, its ' +
        'limits. Writing the config of a queue that is not there makes the queue.',
    )
    .example('ctl queue config set mail mail.yaml', 'make a queue, or change it')
    .example('ctl queue config get mail', 'every setting, with its defaults');
  addGet(config, tools);
  addSet(config, tools);
}

function addGet(config: CtlCommand, tools: Tools): void {
  const get = config
    .command('get')
    .summary('Show the config of a queue')
    .description(
      'Shows the whole config as JSON, which is YAML too: edit it and hand it to `config set`. ' +
        'Its version then guards it against changes of others.',
    )
    .argument('<queue>', 'name of the queue')
    .option('--bare', 'Without name, version, times and pause: for another queue or server')
    .example('ctl queue config get mail > mail.json', 'to edit it')
    .example('ctl queue config get mail --bare', 'to copy it');
  withQueue(get).action(async (name: string, flags: QueueFlags & { bare?: boolean }) => {
    const { showConfig } = await import('./configs.js');
    await showConfig(queueApi(flags, tools), { queue: name, isBare: flags.bare ?? false }, tools);
  });
}

function addSet(config: CtlCommand, tools: Tools): void {
  const set = config
    .command('set')
    .summary('Make a queue, or replace its config')
    .description(
      'Writes the whole config: what the file leaves out returns to its default. What is wrong ' +
        'is told with its line and its JSON pointer, and nothing is written.',
    )
    .argument('<queue>', 'name of the queue')
    .argument('<file>', 'YAML or JSON; - for stdin')
    .option('--validate-only', 'Check everything and write nothing')
    .option('--if-version <number>', 'Write only if the config still has this version')
    .example('ctl queue config set mail mail.yaml', 'from a file')
    .example('ctl queue config set mail mail.yaml --validate-only', 'would it be taken?')
    .example('ctl queue config set mail - --if-version 3 < mail.json', 'unless someone was faster')
    .exitCode(1, 'refused by the server, or failure')
    .exitCode(2, 'the file cannot be read as YAML, or usage error');
  withQueue(set).action(async (name: string, file: string, flags: QueueFlags & ConfigSetFlags) => {
    const { writeConfig } = await import('./configs.js');
    await writeConfig(queueApi(flags, tools), { queue: name, file, flags }, tools);
  });
}
