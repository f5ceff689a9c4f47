import { commands } from '../agent/commands.js';
import type { CtlCommand } from '../base/command.js';
import { addCommands } from '../base/declared.js';
import type { Tools } from '../base/tools.js';
import { daemonServer } from '../daemon/server.js';

export function build(agent: CtlCommand, tools: Tools): void {
  agent
    .description(
      'Start coding agents, follow them and send them work. Name an agent by its name, its ' +
        'id or an id prefix. With --json, commands print the response of the REST API.',
    )
    .example('ctl agent spawn "Fix the failing upload test"', 'start one here')
    .example('ctl agent list', 'their status')
    .example('ctl agent explain docs', 'why one is not working')
    .example('ctl agent questions', 'what you have to decide')
    .example('ctl agent submit "Update the docs" --repo .', 'queue work');
  addCommands(agent, commands(tools), tools, daemonServer(tools));
}
