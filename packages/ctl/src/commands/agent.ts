import {
  addAttach,
  addCompact,
  addRemove,
  addRestart,
  addSend,
  addStop,
} from '../agent/act-commands.js';
import { addExplain, addList, addLogs, addShow } from '../agent/look-commands.js';
import { addSpawn, addSubmit } from '../agent/start-commands.js';
import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';

export function build(agent: CtlCommand, tools: Tools): void {
  agent
    .description(
      'Starts coding agents, shows what they do and talks to them. An agent is named by its ' +
        'name, its id, or the beginning of its id. With --json commands print what the REST API ' +
        'answers.',
    )
    .example('ctl agent spawn "Fix the failing upload test"', 'start one here')
    .example('ctl agent list', 'what they do')
    .example('ctl agent explain docs', 'why one does not go on')
    .example('ctl agent submit "Update the docs" --repo .', 'when its turn comes');
  addList(agent, tools);
  addShow(agent, tools);
  addSpawn(agent, tools);
  addSubmit(agent, tools);
  addSend(agent, tools);
  addLogs(agent, tools);
  addExplain(agent, tools);
  addAttach(agent, tools);
  addStop(agent, tools);
  addRestart(agent, tools);
  addRemove(agent, tools);
  addCompact(agent, tools);
}
