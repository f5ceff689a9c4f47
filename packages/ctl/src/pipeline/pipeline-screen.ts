import type { DaemonSchema } from '@millrace/contract/daemon';
import { humanAge } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { tellingIds } from '../agent/choosing.js';
import type { Tone } from '../render/paint.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { timeText } from '../render/time.js';
import { printable, wrap } from '../render/text.js';

type Pipeline = DaemonSchema<'Pipeline'>;
type Job = DaemonSchema<'Job'>;

const wideColumns = 120;

const tones: Readonly<Record<Pipeline['status'] | Job['status'], Tone>> = {
  pending: 'dim',
  running: 'strong',
  paused: 'warn',
  done: 'ok',
  stalled: 'bad',
  canceled: 'dim',
  failed: 'bad',
  skipped: 'dim',
  needs_attention: 'warn',
};

function statusCell({ status }: Pipeline | Job): Cell {
  return { text: status, tone: tones[status] };
}

/** Table of pipelines, newest first. */
export function pipelinesScreen(pipelines: readonly Pipeline[], now: number, sheet: Sheet): string {
  if (pipelines.length === 0)
    return asTyped('No pipelines. Run one with `ctl pipeline run FILE`.\n');
  const isWide = sheet.columns >= wideColumns;
  const shortIds = tellingIds(
    pipelines.map(({ id }) => id),
    sheet,
  );
  const titles = ['ID', 'NAME', 'STATUS', 'JOBS', 'CREATED', ...(isWide ? ['REPOSITORY'] : [])];
  const rows = pipelines.map((pipeline): Cell[] => [
    shortIds.get(pipeline.id)!,
    pipeline.name,
    statusCell(pipeline),
    countsText(pipeline.jobs),
    timeText(Date.parse(pipeline.created_at), now, sheet),
    ...(isWide ? [pipeline.repo ?? '-'] : []),
  ]);
  return renderTable(
    titles.map((title) => ({ title })),
    rows,
    sheet,
  );
}

/** `2 of 5 done, 1 failed` */
function countsText(jobs: readonly Job[]): string {
  const count = (status: Job['status']) => jobs.filter((job) => job.status === status).length;
  const counts = (['running', 'failed', 'needs_attention', 'skipped'] as const).flatMap(
    (status) => {
      const found = count(status);
      return found === 0 ? [] : [`${found} ${status.replace('_', ' ')}`];
    },
  );
  return [`${count('done')} of ${jobs.length} done`, ...counts].join(', ');
}

/** A pipeline with its jobs, each indented below the job it follows. */
export function pipelineScreen(pipeline: Pipeline, now: number, sheet: Sheet): string {
  const { id, name, repo, created_at: created } = pipeline;
  const facts: Cell[][] = [
    ['pipeline', `${name} (${id})`],
    ['status', statusCell(pipeline)],
    ['repository', repo ?? 'none'],
    ['created', `${created} (${humanAge(Date.parse(created), now)})`],
  ];
  const head = renderTable([{ title: '' }, { title: '', overflow: 'wrap' }], facts, sheet);
  const isWide = sheet.columns >= wideColumns;
  const rows = inTurn(pipeline.jobs).map(({ job, depth, above }): Cell[] => [
    `${'  '.repeat(depth)}${job.id}`,
    statusCell(job),
    job.backend ?? { text: 'default', tone: 'dim' },
    conditionText(job, above),
    ...(isWide ? [job.session_id ?? '-'] : []),
  ]);
  const titles = ['JOB', 'STATUS', 'BACKEND', 'TRIGGER', ...(isWide ? ['AGENT'] : [])];
  const table = renderTable(
    titles.map((title) => ({ title })),
    rows,
    sheet,
  );
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
