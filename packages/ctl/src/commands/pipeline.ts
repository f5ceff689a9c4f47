import type { CtlCommand } from '../base/command.js';
import { addCancel, addList, addRun, addShow, addStart } from '../pipeline/pipeline-commands.js';
import type { Tools } from '../base/tools.js';

export function build(pipeline: CtlCommand, tools: Tools): void {
  pipeline
    .description(
      'Run agents one after another: jobs of a file, each of which may depend on others ' +
        'and gets their output. With --json, commands print the response of the REST API.',
    )
    .example('ctl pipeline run upload.yaml', 'start one')
    .example('ctl pipeline show upload', 'show its progress');
  addRun(pipeline, tools);
  addList(pipeline, tools);
  addShow(pipeline, tools);
  addStart(pipeline, tools);
  addCancel(pipeline, tools);
}
