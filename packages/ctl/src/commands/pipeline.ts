import type { TopCommand } from '../base/groups.js';
import * as daemonLists from '@millrace/contract/lists/daemon';
import type { Commands } from '../base/declared.js';
import { daemonServer } from '../daemon/server.js';

const pipelineArgument = ['<pipeline>', 'pipeline name, id or id prefix'] as const;

const commands: Commands = {
  run: {
    summary: 'Create a pipeline from a file and start it',
    description:
      'Create a pipeline from a YAML or JSON file: a name, and jobs with an id, a prompt ' +
      'and the jobs they depend on. A relative repo is relative to the file. Errors name ' +
      'the line.',
    arguments: [['<file>', 'the file; - for stdin']],
    options: [
      ['--no-start', 'Create it without starting it'],
      ['--wait', 'Wait until it has ended or needs you'],
    ],
    examples: [
      ['ctl pipeline run upload.yaml', 'start it'],
      ['ctl pipeline run upload.yaml --wait', 'and wait for its end'],
    ],
    exitCodes: { 0: 'created; with --wait, done', 1: 'refused; with --wait, not done' },
    run: async () => (await import('../pipeline/pipelines.js')).runPipeline,
  },
  list: daemonLists.pipelineList,
  show: {
    summary: 'Show the jobs of a pipeline in order',
    description:
      'Show the jobs of a pipeline with their status, each indented below the job it ' +
      'follows. --output adds the end of their output.',
    arguments: [pipelineArgument],
    options: [['--output', 'Also show the output of ended jobs']],
    examples: [
      ['ctl pipeline show upload', 'its progress'],
      ['ctl pipeline show upload --output', 'with the output of its jobs'],
    ],
    exitCodes: { 1: 'no such pipeline, or failure' },
    isView: true,
    run: async () => (await import('../pipeline/pipelines.js')).showPipeline,
  },
  start: {
    summary: 'Start or resume a pipeline',
    description:
      'Start a pending pipeline. A pipeline held by a spend cap continues over the cap; ' +
      'a stalled one runs its failed jobs again.',
    arguments: [pipelineArgument],
    examples: [['ctl pipeline start upload', 'resume it']],
    exitCodes: { 1: 'no such pipeline, it has ended, or failure' },
    run: async () => (await import('../pipeline/pipelines.js')).startPipeline,
  },
  cancel: {
    summary: 'Stop a pipeline',
    description: 'Stop the running jobs of a pipeline and skip those that have not started.',
    arguments: [pipelineArgument],
    examples: [['ctl pipeline cancel upload', 'enough']],
    exitCodes: { 1: 'no such pipeline, it is done, or failure' },
    run: async () => (await import('../pipeline/pipelines.js')).cancelPipeline,
  },
};

export const top: Readonly<Record<string, TopCommand>> = {
  pipeline: {
    server: daemonServer,
    description:
      'Run agents one after another: jobs of a file, each of which may depend on others ' +
      'and gets their output. With --json, commands print the response of the REST API.',
    examples: [
      ['ctl pipeline run upload.yaml', 'start one'],
      ['ctl pipeline show upload', 'show its progress'],
    ],
    commands: commands,
  },
};
