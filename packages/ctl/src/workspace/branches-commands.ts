import type { CtlCommand } from '../command.js';
import { withDaemon } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import type { BranchesFlags } from './branches.js';

export function addBranches(workspace: CtlCommand, tools: Tools): void {
  const command = workspace
    .command('branches')
    .summary("Show how the agents' branches stand")
    .description(
      'Shows for each agent on a branch how many commits it is ahead of and behind its base, ' +
        'whether it is merged, and what CI says of its head commit. The daemon looks every 60 ' +
        'seconds, by git and by gh, and fetches nothing. What is not known is shown as -.',
    )
    .option('--refresh', 'Look again before answering');
  withDaemon(command)
    .example('ctl workspace branches', 'as they were last seen')
    .example('ctl workspace branches --refresh', 'as they are now')
    .example('ctl workspace branches --json', 'as the REST API has it')
    .action(async (flags: BranchesFlags) => {
      const { showBranches } = await import('./branches.js');
      await showBranches(flags, tools);
    });
}
