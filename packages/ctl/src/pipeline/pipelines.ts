import { dirname, resolve } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { chosen } from '../agent/choosing.js';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import { harmless } from '../base/exchange.js';
import { readConfigFile, type ConfigFile } from '../queue/config-file.js';
import { rest } from '../base/rest.js';
import type { Tools } from '../base/tools.js';
import { printableLines } from '../render/text.js';
import { pipelineScreen } from './pipeline-screen.js';

type Pipeline = DaemonSchema<'Pipeline'>;

export interface RunFlags extends DaemonFlags {
  start?: boolean;
  wait?: boolean;
}

export async function runPipeline(file: string, flags: RunFlags, tools: Tools): Promise<void> {
  const source = await readConfigFile(file, tools.terminal, 'name: ... and jobs: [...]');
  const api = await daemonApi(flags, tools);
  const pipeline = await api
    .call('createPipeline', { body: definitionOf(source, file, flags) })
    .catch((error: unknown) => {
      throw error instanceof Refusal ? explained(error, source) : error;
    });
  const ended = flags.wait === true ? await waitForEnd(api, pipeline, tools) : pipeline;
  show(ended, tools);
  if (flags.wait === true && ended.status !== 'done') tools.exitWith(1);
}

/** Resolves a relative repository against the file, because the daemon runs elsewhere. */
function definitionOf(
  { config }: ConfigFile,
  file: string,
  { start }: RunFlags,
): DaemonSchema<'PipelineDefinition'> {
  const { repo } = config;
  const from = file === '-' ? '.' : dirname(file);
  return {
    ...config,
    ...(typeof repo === 'string' && repo !== '' ? { repo: resolve(from, repo) } : {}),
    ...(start === false ? { start: false } : {}),
    // The daemon validates it against the contract and names the wrong places.
  } as DaemonSchema<'PipelineDefinition'>;
}

/** Translates JSON pointers of the daemon's error to lines of the file. */
function explained(refusal: Refusal, source: ConfigFile): Refusal {
  const { errors = [] } = refusal.extra;
  if (errors.length === 0) return refusal;
  const faults = errors.map(
    ({ pointer, message }) =>
      `${source.name}:${source.lineOf(pointer)}: ${harmless(pointer)} ${harmless(message)}`,
  );
  return new Refusal(refusal.code, `${faults.join('; ')}.`, refusal.extra);
}

const pollMs = 500;

/** Waits until it has ended or needs the user. */
async function waitForEnd(api: DaemonApi, from: Pipeline, tools: Tools): Promise<Pipeline> {
  for (let pipeline = from; ;) {
    if (pipeline.status !== 'running') return pipeline;
    await rest(pollMs, tools.lifecycle.interrupted);
    pipeline = await api.call('getPipeline', { path: { id: from.id } });
  }
}

export async function showPipeline(
  words: string,
  flags: DaemonFlags & { output?: boolean },
  tools: Tools,
): Promise<void> {
  const { pipeline } = await found(words, flags, tools);
  show(pipeline, tools);
  if (flags.output !== true || tools.terminal.json) return;
  for (const { id, output } of pipeline.jobs) {
    if (output === null) continue;
    const { out } = tools.terminal;
    out.write(`\n${out.paint('strong', id)}\n${printableLines(output)}\n`);
  }
}

export async function changePipeline(
  words: string,
  act: 'start' | 'cancel',
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const { api, pipeline } = await found(words, flags, tools);
  const operation = act === 'start' ? 'startPipeline' : 'cancelPipeline';
  show(await api.call(operation, { path: { id: pipeline.id } }), tools);
}

async function found(words: string, flags: DaemonFlags, tools: Tools) {
  const api = await daemonApi(flags, tools);
  const wording = { kind: 'pipeline', code: 'PIPELINE_NOT_FOUND', list: 'ctl pipeline list' };
  return { api, pipeline: chosen(await readPipelines(api), words, wording) };
}

async function readPipelines(api: DaemonApi): Promise<Pipeline[]> {
  return (await api.call('listPipelines')).pipelines;
}

function show(pipeline: Pipeline, { terminal: { out, json } }: Tools): void {
  out.write(
    json
      ? `${JSON.stringify(pipeline, null, 2)}\n`
      : pipelineScreen(pipeline, systemClock.now(), out),
  );
}
