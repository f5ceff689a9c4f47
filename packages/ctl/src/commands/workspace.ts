import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';
import { addBranches } from '../workspace/branches-commands.js';

export function build(workspace: CtlCommand, tools: Tools): void {
  workspace
    .description('Show the branches of the agents compared with their base, and their CI results.')
    .example('ctl workspace branches', 'every branch of an agent')
    .example('ctl workspace branches --refresh', 'read them again');
  addBranches(workspace, tools);
}
