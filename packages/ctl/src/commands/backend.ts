import {
  addDefault,
  addEnable,
  addList,
  addRescan,
  addThinkingMode,
  addTier,
} from '../backend/backend-commands.js';
import type { CtlCommand } from '../base/command.js';
import type { Tools } from '../base/tools.js';

export function build(backend: CtlCommand, tools: Tools): void {
  backend
    .description(
      'Show and change the registry of coding-agent backends: which are installed, how ' +
        'they are billed, which is the default. With --json, commands print the response of ' +
        'the REST API.',
    )
    .example('ctl backend list', 'what is installed')
    .example('ctl backend tier claude subscription', 'set how one is billed')
    .example('ctl backend default claude', 'set the default');
  addList(backend, tools);
  addRescan(backend, tools);
  addTier(backend, tools);
  addDefault(backend, tools);
  addEnable(backend, tools);
  addThinkingMode(backend, tools);
}
