import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { queueApi, withQueue, type QueueFlags } from './api.js';
import type { ConfigSetFlags } from './configs.js';

export function addConfig(queue: CtlCommand, tools: Tools): void {
  const config = queue
    .command('config')
    .summary('Read and write the config of a queue')
    .description(
      'Read and write the config of a queue: its callback, retries and limits. Writing the ' +
        'config of a missing queue creates the queue.',
    )
    .example('ctl queue config set mail mail.yaml', 'create or change a queue')
    .example('ctl queue config get mail', 'every setting, with its defaults');
  addGet(config, tools);
  addSet(config, tools);
}

function addGet(config: CtlCommand, tools: Tools): void {
  const get = config
    .command('get')
    .summary('Show the config of a queue')
    .description(
      'Show the whole config as JSON, which is also YAML: edit it and pass it to `config ' +
        'set`. Its version then protects it against concurrent changes.',
    )
    .argument('<queue>', 'name of the queue')
    .option('--bare', 'Omit name, version, times and pause, to copy it to another queue or server')
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
    .summary('Create a queue, or replace its config')
    .description(
      'Write the whole config: settings missing from the file return to their defaults. ' +
        'Errors name the line and the JSON pointer, and nothing is written.',
    )
    .argument('<queue>', 'name of the queue')
    .argument('<file>', 'YAML or JSON; - for stdin')
    .option('--validate-only', 'Validate and write nothing')
    .option('--if-version <number>', 'Write only if the config still has this version')
    .example('ctl queue config set mail mail.yaml', 'from a file')
    .example('ctl queue config set mail mail.yaml --validate-only', 'is it valid?')
    .example(
      'ctl queue config set mail - --if-version 3 < mail.json',
      'unless somebody else changed it first',
    )
    .exitCode(1, 'refused by the server, or failure')
    .exitCode(2, 'the file cannot be read as YAML, or usage error');
  withQueue(set).action(async (name: string, file: string, flags: QueueFlags & ConfigSetFlags) => {
    const { writeConfig } = await import('./configs.js');
    await writeConfig(queueApi(flags, tools), { queue: name, file, flags }, tools);
  });
}
