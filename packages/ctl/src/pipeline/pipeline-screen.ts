import type { DaemonSchema } from '@millrace/contract/daemon';
import * as daemonLists from '@millrace/contract/lists/daemon';
import { humanAge } from '@millrace/kit/units';
import { asTyped } from '../base/command-name.js';
import { cellOf } from '../base/list-text.js';
import { renderTable, type Cell, type Sheet } from '../render/table.js';
import { printable, wrap } from '../render/text.js';

type Pipeline = DaemonSchema<'Pipeline'>;
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
  const head = renderTable([{ title: '' }, { title: '', overflow: 'wrap' }], facts, sheet);
  const isWide = sheet.columns >= wideColumns;
  const rows = inTurn(pipeline.jobs).map(({ job, depth, above }): Cell[] => [
    `${'  '.repeat(depth)}${job.id}`,
    cellOf(pipelineStatus(job), now, sheet),
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
