import type { CtlCommand } from '../command.js';
import { addCancel, addList, addRun, addShow, addStart } from '../pipeline/pipeline-commands.js';
import type { Tools } from '../tools.js';

export function build(pipeline: CtlCommand, tools: Tools): void {
  pipeline
    .description(
      'Runs agents one after another: jobs of a file, each of which may wait for others and is ' +
        'handed what they said. With --json commands print what the REST API answers.',
    )
    .example('ctl pipeline run upload.yaml', 'start one')
    .example('ctl pipeline show upload', 'see how far it is');
  addRun(pipeline, tools);
  addList(pipeline, tools);
  addShow(pipeline, tools);
  addStart(pipeline, tools);
  addCancel(pipeline, tools);
}
