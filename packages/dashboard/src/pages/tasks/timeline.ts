import type { QueueSchema } from '@millrace/contract/queue';
import type { Tone } from '../../parts/status.js';
import type { Task } from '../../queue/api.js';

export type TaskRun = QueueSchema<'TaskRun'>;
export type TaskNode = QueueSchema<'TaskNode'>;

/** What a task has done, waited for and submitted. */
export interface TaskHistory {
  run?: TaskRun | undefined;
  tree?: TaskNode | undefined;
}

export type RowKind = 'attempt' | 'step' | 'sleep' | 'wait' | 'child';

export interface TimelineRow {
  key: string;
  kind: RowKind;
  name: string;
  tone: Tone;
  state: string;
  startMs: number;
  /** Absent: it goes on. */
  endMs?: number | undefined;
  /** The id of a child. */
  task?: string | undefined;
}

export interface Timeline {
  rows: (TimelineRow & { left: number; width: number })[];
  /** Labels in equal, round steps from the submit on. */
  ticks: { left: number; afterMs: number }[];
}

const maxTicks = 4;
const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000];
const tickSteps = [
  ...[1, 2, 5].flatMap((count) => [count, count * 10, count * 100]).toSorted((a, b) => a - b),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 30].map((count) => count * day),
];

/** Places everything a task did on an axis from the submit to the last thing known. */
export function timelineOf(task: Task, history: TaskHistory, now: number): Timeline {
  const rows = rowsOf(task, history).toSorted((a, b) => a.startMs - b.startMs);
  const { created_at, next_attempt_at, status } = task;
  const start = rows.reduce(
    (first, { startMs }) => Math.min(first, startMs),
    Date.parse(created_at),
  );
  const ends = rows.map(({ endMs }) => endMs ?? now);
  if (status === 'IN_FLIGHT') ends.push(now);
  if (status === 'PENDING' && next_attempt_at) ends.push(Date.parse(next_attempt_at));
  const spanMs = ends.reduce((most, end) => Math.max(most, end - start), 1);
  const percent = (ms: number) => Math.min(100, Math.max(0, (ms / spanMs) * 100));
  return {
    rows: rows.map((row) => ({
      ...row,
      left: percent(row.startMs - start),
      width: percent((row.endMs ?? now) - row.startMs),
    })),
    ticks: ticksOf(spanMs).map((afterMs) => ({ left: percent(afterMs), afterMs })),
  };
}

function rowsOf(task: Task, { run, tree }: TaskHistory): TimelineRow[] {
  const children = (tree?.children ?? []).filter(({ hidden }) => !hidden);
  return [
    ...task.attempts.map(attemptRow),
    ...(run?.steps ?? []).map(stepRow),
    ...children.map(childRow),
    ...(run?.wait ? [waitRow(task, run.wait)] : []),
  ];
}

const outcomeTones: Readonly<Record<string, Tone>> = {
  SUCCEEDED: 'good',
  FAILED: 'bad',
  LEASE_EXPIRED: 'warn',
};

/** `Attempt 2`, or `Attempt R1 2` after the first redrive. */
function attemptRow({ attempt, redrive, outcome, started_at, duration_ms }: Task['attempts'][0]) {
  const startMs = Date.parse(started_at);
  return {
    key: `attempt ${redrive}.${attempt}.${started_at}`,
    kind: 'attempt' as const,
    name: `Attempt ${redrive === 0 ? '' : `R${redrive} `}${attempt}`,
    tone: outcomeTones[outcome] ?? 'off',
    state: outcome.toLowerCase(),
    startMs,
    endMs: startMs + duration_ms,
  };
}

function stepRow({ name, result, error, started_at, recorded_at }: TaskRun['steps'][number]) {
  const recordedMs = Date.parse(recorded_at);
  const until = sleepEnd(result);
  if (until !== undefined && !error) {
    const sleep = { kind: 'sleep' as const, tone: 'calm' as const, state: 'slept' };
    return { key: `step ${name}`, name, ...sleep, startMs: recordedMs, endMs: until };
  }
  return {
    key: `step ${name}`,
    kind: 'step' as const,
    name,
    tone: error ? ('bad' as const) : ('good' as const),
    state: error ? `failed: ${error.type}` : 'done',
    startMs: started_at ? Date.parse(started_at) : recordedMs,
    endMs: recordedMs,
  };
}

/** `step.sleep` of the SDK records nothing but the time when it ends. */
function sleepEnd(result: unknown): number | undefined {
  if (typeof result !== 'object' || result === null) return undefined;
  const [[name, value] = ['', undefined], ...more] = Object.entries(result);
  return name === 'until' && typeof value === 'number' && more.length === 0 ? value : undefined;
}

export const taskTones: Readonly<Record<Task['status'], Tone>> = {
  PENDING: 'calm',
  IN_FLIGHT: 'busy',
  SUCCEEDED: 'good',
  DEAD: 'bad',
};

function childRow({ id, handler_ref, status = 'PENDING', created_at, ended_at }: TaskNode) {
  return {
    key: `child ${id}`,
    kind: 'child' as const,
    name: handler_ref ?? id,
    tone: taskTones[status],
    state: status.toLowerCase(),
    startMs: Date.parse(created_at!),
    endMs: ended_at ? Date.parse(ended_at) : undefined,
    task: id,
  };
}

function waitRow(task: Task, { kind, until, signals }: QueueSchema<'TaskWait'>): TimelineRow {
  const name = signals ? `Waits for ${signals.join(', ')}` : `Waits for ${kind}`;
  const endMs = kind === 'timer' && until ? Date.parse(until) : undefined;
  const startMs = Date.parse(task.updated_at);
  return { key: 'wait', kind: 'wait', name, tone: 'calm', state: 'waiting', startMs, endMs };
}

function ticksOf(spanMs: number): number[] {
  const step = tickSteps.find((one) => spanMs / one <= maxTicks) ?? spanMs / maxTicks;
  return Array.from({ length: Math.floor(spanMs / step) + 1 }, (_, index) => index * step);
}
