import type { CtlCommand } from '../command.js';
import type { ConfigFlags } from '../config/config.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../tools.js';

export function build(config: CtlCommand, tools: Tools): void {
  config
    .description(
      'Show every setting of the daemon with its value and its source: a flag, a variable, ' +
        'the config file or the default. Reads the running daemon, or shows the settings ' +
        'that one would start with. Secrets are masked.',
    )
    .argument('[key]', 'one setting, such as tokens.warn, or a group of them, such as tokens');
  withDaemon(config)
    .option('--config <file>', 'Read this file instead of the running daemon')
    .example('ctl config', 'everything')
    .example('ctl config tokens', 'one group')
    .example('ctl config --config config.yaml', 'check a file before it is used')
    .example('ctl config --json', 'for scripts')
    .action(async (key: string | undefined, flags: ConfigFlags) => {
      const { showConfig } = await import('../config/config.js');
      await showConfig(key, flags, tools);
    });
}
