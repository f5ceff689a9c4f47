import type { CtlCommand } from '../command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../tools.js';
import type { RunFlags } from './pipelines.js';

const whichPipeline = 'its name, its id, or the beginning of its id';

export function addRun(pipeline: CtlCommand, tools: Tools): void {
  withDaemon(
    pipeline
      .command('run')
      .summary('Make a pipeline of a file and start it')
      .description(
        'Makes a pipeline of a YAML or JSON file: a name, and jobs with an id, a prompt and the ' +
          'jobs they depend on. A relative repo is meant from where the file lies. Mistakes are ' +
          'told by their lines.',
      )
      .argument('<file>', 'the file; - for stdin')
      .option('--no-start', 'Only make it')
      .option('--wait', 'Wait until it can go no further by itself')
      .example('ctl pipeline run upload.yaml', 'start it')
      .example('ctl pipeline run upload.yaml --wait', 'and see how it ends')
      .exitCode(0, 'made; with --wait, done')
      .exitCode(1, 'refused; with --wait, not done'),
  ).action(async (file: string, flags: RunFlags) => {
    const { runPipeline } = await import('./pipelines.js');
    await runPipeline(file, flags, tools);
  });
}

export function addList(pipeline: CtlCommand, tools: Tools): void {
  withDaemon(
    pipeline
      .command('list')
      .alias('ls')
      .summary('List the pipelines')
      .description('Lists the pipelines, newest first, and how far each has come.')
      .example('ctl pipeline list', 'as a table')
      .example('ctl pipeline ls --json', 'for scripts'),
  ).action(async (flags: DaemonFlags) => {
    const { listPipelines } = await import('./pipelines.js');
    await listPipelines(flags, tools);
  });
}

export function addShow(pipeline: CtlCommand, tools: Tools): void {
  withDaemon(
    pipeline
      .command('show')
      .summary('Show the jobs of a pipeline in their order')
      .description(
        'Shows the jobs of a pipeline, each indented below the one it comes after, with its ' +
          'status. --output adds the end of what each said.',
      )
      .argument('<pipeline>', whichPipeline)
      .option('--output', 'Also the output of the jobs that have ended')
      .example('ctl pipeline show upload', 'how far it is')
      .example('ctl pipeline show upload --output', 'and what they said')
      .exitCode(1, 'no such pipeline, or failure'),
  ).action(async (words: string, flags: DaemonFlags & { output?: boolean }) => {
    const { showPipeline } = await import('./pipelines.js');
    await showPipeline(words, flags, tools);
  });
}

export function addStart(pipeline: CtlCommand, tools: Tools): void {
  withDaemon(
    pipeline
      .command('start')
      .summary('Start a pipeline, or let it go on')
      .description(
        'Starts a pending pipeline. One that is held back by a spend cap goes on over it; one ' +
          'that is stalled runs its failed jobs again.',
      )
      .argument('<pipeline>', whichPipeline)
      .example('ctl pipeline start upload', 'go on')
      .exitCode(1, 'no such pipeline, it has ended, or failure'),
  ).action(async (words: string, flags: DaemonFlags) => {
    const { changePipeline } = await import('./pipelines.js');
    await changePipeline(words, 'start', flags, tools);
  });
}

export function addCancel(pipeline: CtlCommand, tools: Tools): void {
  withDaemon(
    pipeline
      .command('cancel')
      .summary('End a pipeline')
      .description('Stops the running jobs of a pipeline and skips those that have not begun.')
      .argument('<pipeline>', whichPipeline)
      .example('ctl pipeline cancel upload', 'enough')
      .exitCode(1, 'no such pipeline, it is done, or failure'),
  ).action(async (words: string, flags: DaemonFlags) => {
    const { changePipeline } = await import('./pipelines.js');
    await changePipeline(words, 'cancel', flags, tools);
  });
}
