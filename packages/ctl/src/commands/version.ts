import type { CtlCommand } from '../base/command.js';
import type { StatusFlags } from '../status/read-overview.js';
import type { Tools } from '../base/tools.js';

export function build(versions: CtlCommand, tools: Tools): void {
  versions
    .description(
      'Show the version of this command, of Node and of every running server. `ctl --version` ' +
        'prints only the first.',
    )
    .option('--data <dir>', 'Data directory of the servers on this machine')
    .example('ctl version', 'does everything run the same version?')
    .example('ctl version --json', 'for scripts')
    .action(async (flags: StatusFlags) => {
      const { showVersion } = await import('../running/show-version.js');
      await showVersion(flags, tools);
    });
}
