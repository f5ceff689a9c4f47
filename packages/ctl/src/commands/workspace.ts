import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';
import { addBranches } from '../workspace/branches-commands.js';

export function build(workspace: CtlCommand, tools: Tools): void {
  workspace
    .description('Shows what the agents work on: how their branches stand against CI and base.')
    .example('ctl workspace branches', 'every branch of an agent')
    .example('ctl workspace branches --refresh', 'looked at anew');
  addBranches(workspace, tools);
}
