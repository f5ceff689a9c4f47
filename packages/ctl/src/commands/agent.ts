import {
  addAttach,
  addCompact,
  addRemove,
  addRestart,
  addSend,
  addStop,
} from '../agent/act-commands.js';
import { addExplain, addList, addLogs, addShow } from '../agent/view-commands.js';
import { addAnswer, addQuestions } from '../agent/question-commands.js';
import { addSpawn, addSubmit } from '../agent/start-commands.js';
import {
  addCommit,
  addDiff,
  addMerge,
  addOpenPr,
  addPush,
  addRebase,
} from '../agent/workbench-commands.js';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';

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
  addList(agent, tools);
  addShow(agent, tools);
  addSpawn(agent, tools);
  addSubmit(agent, tools);
  addSend(agent, tools);
  addQuestions(agent, tools);
  addAnswer(agent, tools);
  addLogs(agent, tools);
  addExplain(agent, tools);
  addAttach(agent, tools);
  addStop(agent, tools);
  addRestart(agent, tools);
  addRemove(agent, tools);
  addCompact(agent, tools);
  addDiff(agent, tools);
  addCommit(agent, tools);
  addPush(agent, tools);
  addOpenPr(agent, tools);
  addMerge(agent, tools);
  addRebase(agent, tools);
}
