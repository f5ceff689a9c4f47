import type { CtlCommand } from '../command.js';
import type { ConfigFlags } from '../config/config.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../tools.js';

export function build(config: CtlCommand, tools: Tools): void {
  config
    .description(
      'Shows every setting of the daemon with its value and where that came from: a flag, a ' +
        'variable, the config file or the default. Asks the daemon that runs; where none does, ' +
        'shows what one would start with. Secrets are masked.',
    )
    .argument('[key]', 'one setting, such as tokens.warn, or a group of them, such as tokens');
  withDaemon(config)
    .option('--config <file>', 'Read this file instead of asking a daemon')
    .example('ctl config', 'everything')
    .example('ctl config tokens', 'one group')
    .example('ctl config --config config.yaml', 'check a file before it is used')
    .example('ctl config --json', 'for scripts')
    .action(async (key: string | undefined, flags: ConfigFlags) => {
      const { showConfig } = await import('../config/config.js');
      await showConfig(key, flags, tools);
    });
}
