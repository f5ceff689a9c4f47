import { dirname, resolve } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { chosen } from '../agent/choosing.js';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import { harmless } from '../base/exchange.js';
import { readConfigFile, type ConfigFile } from '../queue/config-file.js';
import { rest } from '../base/rest.js';
import type { Flags, Tools } from '../base/tools.js';
import { printableLines, printable, wrap } from '../render/text.js';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { humanAge } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { cellOf } from '../base/list-text.js';
import { renderTable, renderFacts, type Cell, type Sheet } from '../render/table.js';

type Pipeline = DaemonSchema<'Pipeline'>;

export type RunFlags = DaemonFlags & Flags<never, 'start wait'>;

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

const changer =
  (operation: 'startPipeline' | 'cancelPipeline') =>
  async (words: string, flags: DaemonFlags, tools: Tools): Promise<void> => {
    const { api, pipeline } = await found(words, flags, tools);
    show(await api.call(operation, { path: { id: pipeline.id } }), tools);
  };
export const startPipeline = changer('startPipeline');
export const cancelPipeline = changer('cancelPipeline');

async function found(words: string, flags: DaemonFlags, tools: Tools) {
  const api = await daemonApi(flags, tools);
  const wording = { kind: 'pipeline', code: 'PIPELINE_NOT_FOUND', list: 'ctl pipeline list' };
  return { api, pipeline: chosen(await readPipelines(api), words, wording) };
}

async function readPipelines(api: DaemonApi): Promise<Pipeline[]> {
  return (await api.call('listPipelines')).pipelines;
}

function show(pipeline: Pipeline, { terminal }: Tools): void {
  terminal.show(pipeline, (out) => pipelineScreen(pipeline, systemClock.now(), out));
}

type Job = DaemonSchema<'Job'>;
const { pipelineStatus } = daemonLists;

const wideColumns = 120;

/** A pipeline with its jobs, each indented below the job it follows. */
export function pipelineScreen(pipeline: Pipeline, now: number, sheet: Sheet): string {
  const { id, name, repo, created_at: created } = pipeline;
  const facts: Cell[][] = [
    ['pipeline', `${name} (${id})`],
    ['status', cellOf(pipelineStatus(pipeline), now, sheet)],
    ['repository', repo ?? 'none'],
    ['created', `${created} (${humanAge(Date.parse(created), now)})`],
  ];
  const head = renderFacts(facts, sheet);
  const isWide = sheet.columns >= wideColumns;
  const rows = inTurn(pipeline.jobs).map(({ job, depth, above }): Cell[] => [
    `${'  '.repeat(depth)}${job.id}`,
    cellOf(pipelineStatus(job), now, sheet),
    job.backend ?? { text: 'default', tone: 'dim' },
    conditionText(job, above),
    ...(isWide ? [job.session_id ?? '-'] : []),
  ]);
  const titles = ['JOB', 'STATUS', 'BACKEND', 'TRIGGER', ...(isWide ? ['AGENT'] : [])];
  const table = renderTable(titles, rows, sheet);
  return `${head}\n${table}${adviceFor(pipeline, sheet)}`;
}

interface Placed {
  readonly job: Job;
  readonly depth: number;
  /** The job above it. */
  readonly above: string | undefined;
}

/** Every job once, below the last job it depends on, so that jobs are listed in running order. */
export function inTurn(jobs: readonly Job[]): Placed[] {
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const depths = new Map<string, number>();
  const depthOf = (job: Job): number => {
    const known = depths.get(job.id);
    if (known !== undefined) return known;
    depths.set(job.id, 0);
    const before = dependenciesOf(job).map((each) => depthOf(each) + 1);
    const depth = Math.max(0, ...before);
    depths.set(job.id, depth);
    return depth;
  };
  const dependenciesOf = ({ depends_on: ids }: Job): Job[] =>
    ids.flatMap((id) => byId.get(id) ?? []);
  const below = new Map<string | undefined, Job[]>();
  for (const job of jobs) {
    const deepest = dependenciesOf(job).reduce<Job | undefined>(
      (best, each) => (best && depthOf(best) > depthOf(each) ? best : each),
      undefined,
    );
    const siblings = below.get(deepest?.id) ?? [];
    below.set(deepest?.id, [...siblings, job]);
  }
  const placed: Placed[] = [];
  const place = (above: string | undefined, depth: number): void => {
    for (const job of below.get(above) ?? []) {
      placed.push({ job, depth, above });
      place(job.id, depth + 1);
    }
  };
  place(undefined, 0);
  return placed;
}

const conditions = { success: 'after', failure: 'if failed:', always: 'after any end of' };

function conditionText({ depends_on: ids, run_if: condition }: Job, above: string | undefined) {
  if (ids.length === 0) return 'immediately';
  const others = ids.filter((id) => id !== above);
  const all = [...(above === undefined ? [] : [above]), ...others];
  return `${conditions[condition]} ${all.join(', ')}`;
}

function adviceFor({ id, status, jobs }: Pipeline, sheet: Sheet): string {
  const waiting = jobs.find((job) => job.status === 'needs_attention')?.session_id;
  const lines = [
    ...(waiting ? [asTyped(`A job waits for your input: ctl agent explain ${waiting}`)] : []),
    ...(status === 'paused'
      ? [asTyped(`A spend cap holds it. To continue anyway: ctl pipeline start ${id}`)]
      : []),
    ...(status === 'stalled'
      ? [asTyped(`Run the failed jobs again: ctl pipeline start ${id}`)]
      : []),
    ...(status === 'pending' ? [asTyped(`Start it: ctl pipeline start ${id}`)] : []),
  ];
  const width = Math.min(sheet.columns, 100);
  return lines
    .flatMap((line) => wrap(printable(line), width))
    .map((line) => `${line}\n`)
    .join('');
}
