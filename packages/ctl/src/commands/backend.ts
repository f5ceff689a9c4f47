import {
  addDefault,
  addEnable,
  addList,
  addRescan,
  addThinkingMode,
  addTier,
} from '../backend/backend-commands.js';
import type { CtlCommand } from '../command.js';
import type { Tools } from '../tools.js';

export function build(backend: CtlCommand, tools: Tools): void {
  backend
    .description(
      'Shows and changes the registry of coding-agent command lines: which are installed, how ' +
        'they are billed, which is the default. With --json commands print what the REST API ' +
        'answers.',
    )
    .example('ctl backend list', 'what there is')
    .example('ctl backend tier claude subscription', 'how one is billed')
    .example('ctl backend default claude', 'which one to use');
  addList(backend, tools);
  addRescan(backend, tools);
  addTier(backend, tools);
  addDefault(backend, tools);
  addEnable(backend, tools);
  addThinkingMode(backend, tools);
}
