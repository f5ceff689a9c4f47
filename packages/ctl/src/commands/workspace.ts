import type { CtlCommand } from '../base/command.js';
import { addCommands } from '../base/declared.js';
import type { Tools } from '../base/tools.js';
import { daemonServer } from '../daemon/server.js';
import type { BranchesFlags } from '../workspace/branches.js';

export function build(workspace: CtlCommand, tools: Tools): void {
  workspace
    .description('Show the branches of the agents compared with their base, and their CI results.')
    .example('ctl workspace branches', 'every branch of an agent')
    .example('ctl workspace branches --refresh', 'read them again');
  const branches = {
    summary: 'Show the branches of the agents with their CI status',
    description:
      'Show for each agent on a branch how many commits it is ahead of and behind its ' +
      'base, whether it is merged, and the CI result of its head commit. The daemon reads ' +
      'them every 60 seconds with git and gh, and fetches nothing. Unknown values are ' +
      'shown as -.',
    options: [['--refresh', 'Read the branches again before answering']],
    examples: [
      ['ctl workspace branches', 'as last read'],
      ['ctl workspace branches --refresh', 'as they are now'],
      ['ctl workspace branches --json', 'the response of the REST API'],
    ],
    isView: true,
    run: async (flags: BranchesFlags) =>
      (await import('../workspace/branches.js')).showBranches(flags, tools),
  } as const;
  addCommands(workspace, { branches }, tools, daemonServer(tools));
}
