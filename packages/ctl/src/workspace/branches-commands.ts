import type { CtlCommand } from '../base/command.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import type { BranchesFlags } from './branches.js';

export function addBranches(workspace: CtlCommand, tools: Tools): void {
  const command = workspace
    .command('branches')
    .summary('Show the branches of the agents with their CI status')
    .description(
      'Show for each agent on a branch how many commits it is ahead of and behind its ' +
        'base, whether it is merged, and the CI result of its head commit. The daemon reads ' +
        'them every 60 seconds with git and gh, and fetches nothing. Unknown values are ' +
        'shown as -.',
    )
    .option('--refresh', 'Read the branches again before answering');
  withDaemon(command)
    .example('ctl workspace branches', 'as last read')
    .example('ctl workspace branches --refresh', 'as they are now')
    .example('ctl workspace branches --json', 'the response of the REST API')
    .shown(tools)
    .action(async (flags: BranchesFlags) => {
      const { showBranches } = await import('./branches.js');
      await showBranches(flags, tools);
    });
}
