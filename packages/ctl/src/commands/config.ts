import type { CtlCommand } from '../base/command.js';
import type { ChangeFlags } from '../config/changing.js';
import type { ConfigFlags } from '../config/config.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import { keepFlagsApart } from '../usage/own-flags.js';

export function build(config: CtlCommand, tools: Tools): void {
  config
    .description(
      'Show every setting of the daemon with its value and its source: a flag, a variable, ' +
        'the config file or the default. Reads the running daemon, or shows the settings ' +
        'that one would start with. Secrets are masked.',
    )
    .argument('[key]', 'one setting, such as tokens.warn, or a group of them, such as tokens');
  withDaemon(keepFlagsApart(config))
    .option('--config <file>', 'Read this file instead of the running daemon')
    .example('ctl config', 'everything')
    .example('ctl config tokens', 'one group')
    .example('ctl config --config config.yaml', 'check a file before it is used')
    .example('ctl config --json', 'for scripts')
    .action(async (key: string | undefined, flags: ConfigFlags) => {
      const { showConfig } = await import('../config/config.js');
      await showConfig(key, flags, tools);
    });
  addGet(config, tools);
  addSet(config, tools);
  addEdit(config, tools);
}

function addGet(config: CtlCommand, tools: Tools): void {
  withDaemon(
    config
      .command('get')
      .summary('Print the value of one setting')
      .description('Print the value of one setting, and nothing else. Secrets are masked.')
      .argument('<key>', 'the setting, such as tokens.warn')
      .option('--config <file>', 'Read this file instead of the running daemon'),
  )
    .example('ctl config get tokens.warn', 'for scripts')
    .action(async (key: string, _flags: ConfigFlags, self: CtlCommand) => {
      const { printSetting } = await import('../config/config.js');
      await printSetting(key, self.optsWithGlobals<ConfigFlags>(), tools);
    });
}

function addSet(config: CtlCommand, tools: Tools): void {
  withDaemon(
    config
      .command('set')
      .summary('Write one setting into the config file')
      .description(
        'Write one setting into the config file of the daemon, which keeps its comments. The ' +
          'result is validated first. A running daemon applies it at once, or the command says that it ' +
          'needs a restart.',
      )
      .argument('<key>', 'the setting, such as tokens.warn')
      .argument('<value>', 'as in the file: 150k, true, [claude, codex]')
      .option('--config <file>', 'Change this file'),
  )
    .example('ctl config set tokens.warn 150k', 'change one setting')
    .example('ctl config set metrics false --config config.yaml', 'in this file')
    .exitCode(2, 'usage error, or the value is invalid')
    .action(async (key: string, value: string, _flags: ChangeFlags, self: CtlCommand) => {
      const { setSetting } = await import('../config/changing.js');
      await setSetting(key, value, self.optsWithGlobals<ChangeFlags>(), tools);
    });
}

function addEdit(config: CtlCommand, tools: Tools): void {
  withDaemon(
    config
      .command('edit')
      .summary('Edit the config file')
      .description(
        'Open the config file of the daemon in $VISUAL, $EDITOR or vi. It is stored only if it ' +
          'is valid. A running daemon applies what it can; the rest is named.',
      )
      .option('--config <file>', 'Change this file'),
  )
    .example('ctl config edit', 'change several settings')
    .exitCode(1, 'nothing was changed, or failure')
    .action(async (_flags: ChangeFlags, self: CtlCommand) => {
      const { editSettings } = await import('../config/changing.js');
      await editSettings(self.optsWithGlobals<ChangeFlags>(), tools);
    });
}
