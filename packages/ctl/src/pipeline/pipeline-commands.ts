import type { CtlCommand } from '../base/command.js';
import { withDaemon, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';
import type { RunFlags } from './pipelines.js';

const whichPipeline = 'pipeline name, id or id prefix';

export function addRun(pipeline: CtlCommand, tools: Tools): void {
  withDaemon(
    pipeline
      .command('run')
      .summary('Create a pipeline from a file and start it')
      .description(
        'Create a pipeline from a YAML or JSON file: a name, and jobs with an id, a prompt ' +
          'and the jobs they depend on. A relative repo is relative to the file. Errors name ' +
          'the line.',
      )
      .argument('<file>', 'the file; - for stdin')
      .option('--no-start', 'Create it without starting it')
      .option('--wait', 'Wait until it has ended or needs you')
      .example('ctl pipeline run upload.yaml', 'start it')
      .example('ctl pipeline run upload.yaml --wait', 'and wait for its end')
      .exitCode(0, 'created; with --wait, done')
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
      .summary('List pipelines')
      .description('List pipelines, newest first, with their progress.')
      .example('ctl pipeline list', 'as a table')
      .example('ctl pipeline ls --json', 'for scripts'),
  )
    .shown(tools)
    .action(async (flags: DaemonFlags) => {
      const { listPipelines } = await import('./pipelines.js');
      await listPipelines(flags, tools);
    });
}

export function addShow(pipeline: CtlCommand, tools: Tools): void {
  withDaemon(
    pipeline
      .command('show')
      .summary('Show the jobs of a pipeline in order')
      .description(
        'Show the jobs of a pipeline with their status, each indented below the job it ' +
          'follows. --output adds the end of their output.',
      )
      .argument('<pipeline>', whichPipeline)
      .option('--output', 'Also show the output of ended jobs')
      .example('ctl pipeline show upload', 'its progress')
      .example('ctl pipeline show upload --output', 'with the output of its jobs')
      .exitCode(1, 'no such pipeline, or failure'),
  )
    .shown(tools)
    .action(async (words: string, flags: DaemonFlags & { output?: boolean }) => {
      const { showPipeline } = await import('./pipelines.js');
      await showPipeline(words, flags, tools);
    });
}

export function addStart(pipeline: CtlCommand, tools: Tools): void {
  withDaemon(
    pipeline
      .command('start')
      .summary('Start or resume a pipeline')
      .description(
        'Start a pending pipeline. A pipeline held by a spend cap continues over the cap; ' +
          'a stalled one runs its failed jobs again.',
      )
      .argument('<pipeline>', whichPipeline)
      .example('ctl pipeline start upload', 'resume it')
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
      .summary('Stop a pipeline')
      .description('Stop the running jobs of a pipeline and skip those that have not started.')
      .argument('<pipeline>', whichPipeline)
      .example('ctl pipeline cancel upload', 'enough')
      .exitCode(1, 'no such pipeline, it is done, or failure'),
  ).action(async (words: string, flags: DaemonFlags) => {
    const { changePipeline } = await import('./pipelines.js');
    await changePipeline(words, 'cancel', flags, tools);
  });
}
