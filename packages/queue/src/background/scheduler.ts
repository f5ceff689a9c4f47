import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { taskOptions } from '../storage/port/store-parts.js';
import type { Queue } from '../core/queue.js';
import {
  planRuns,
  withRuns,
  type Run,
  type ScheduleDefinition,
  type ScheduleState,
} from '../core/schedule.js';
import type { NewTask, Row, TaskStore } from '../storage/port/task-store.js';
import type { TaskObserver } from './task-observer.js';

export interface SchedulerOptions {
  store: TaskStore;
  clock: Clock;
  log: Log;
  observer: TaskObserver;
}

/** Another server may have written a schedule, or the clock may have been set. */
const maxPauseMs = 5_000;
const minPauseMs = 10;
/** A run of a busy server that is this late still counts as on time. */
const graceMs = 10_000;
/** What was due just before this server started may be about to run on another one. */
const sharedStartMs = 1_000;

/**
 * Submits the tasks of schedules whose time has come. Every server runs one. A run and the new
 * state of its schedule are one commit that only one server can make.
 */
export class Scheduler {
  /** By the monotonic clock, because the other one may be set. */
  readonly #startedAt: number;

  constructor(private readonly options: SchedulerOptions) {
    this.#startedAt = options.clock.monotonic();
  }

  /** Runs what is due, and returns how long to wait for the next run at most. */
  async run(): Promise<number> {
    const { store, clock } = this.options;
    const now = clock.now();
    let nextAt = Infinity;
    for (const row of await store.listRows({ table: 'schedule' })) {
      const { nextRunAt } = row.value as ScheduleState;
      if (nextRunAt === null) continue;
      const next = nextRunAt <= now ? await this.#advance(row) : nextRunAt;
      nextAt = Math.min(nextAt, next ?? Infinity);
    }
    return Math.min(maxPauseMs, Math.max(minPauseMs, nextAt - clock.now()));
  }

  /** Returns the time of the next run; null if it is unknown. */
  async #advance(listed: Row): Promise<number | null> {
    const { store, clock, observer } = this.options;
    const { table, queue: queueName, key: name } = listed;
    const queue = await store.getQueue(queueName);
    const where = { table, queue: queueName, key: name };
    const [row] = await store.listRows({ ...where, hasBodies: true });
    if (!queue || !row) return null;
    const definition = row.body as ScheduleDefinition;
    const state = row.value as ScheduleState;
    const now = clock.now();
    const key = { queue: queueName, incarnation: queue.incarnation, name };
    const times = { now, onTimeSince: now - this.#graceMs };
    const { runs: planned, nextRunAt } = planRuns(key, definition, state, times);
    const { runs: wanted, openIds } = await this.#withoutOverlap(definition, state, planned);
    const runs = wanted.length === 0 || (await hasRoom(store, queue)) ? wanted : [];
    for (const run of wanted.slice(runs.length)) this.#note('queue_full', key, run);
    const tasks = runs.map((run) => scheduledTask(definition, queue, run, state.by));
    const value = withRuns({ ...state, nextRunAt, openIds }, runs);
    const puts = [{ ...where, ifRevision: row.revision, value }];
    const result = await store.writeRows({ puts, tasks, now });
    // Otherwise another server was first.
    if (result.kind === 'written') {
      observer.scheduled(tasks, result.inserted, now);
      result.inserted.forEach((inserted, i) => this.#note(inserted.kind, key, runs[i]!));
    }
    return nextRunAt;
  }

  /** How late a run may be; what was due before this server started was missed. */
  get #graceMs(): number {
    const { store, clock } = this.options;
    const startMs = store.capabilities.isShared ? sharedStartMs : 0;
    return Math.min(graceMs, clock.monotonic() - this.#startedAt + startMs);
  }

  async #withoutOverlap(
    { overlap }: ScheduleDefinition,
    { openIds }: ScheduleState,
    runs: readonly Run[],
  ): Promise<{ runs: readonly Run[]; openIds: readonly string[] }> {
    if (overlap === 'allow') return { runs, openIds };
    const [open, dead]: [string[], string[]] = [[], []];
    for (const id of openIds) {
      const task = await this.options.store.getTask(id);
      if (!task || 'purgedAt' in task || task.status === 'SUCCEEDED') continue;
      // A dead task is open again after a redrive.
      (task.status === 'DEAD' ? dead : open).push(id);
    }
    return { runs: open.length > 0 ? [] : runs.slice(-1), openIds: [...dead, ...open] };
  }

  #note(kind: string, { queue, name }: { queue: string; name: string }, { id }: Run): void {
    const { log } = this.options;
    const fields = { queue, schedule: name, task: id };
    if (kind === 'stored') log.debug(fields, 'scheduled task submitted');
    else if (kind === 'queue_full') log.warn(fields, 'scheduled task dropped: queue is full');
    else log.warn({ ...fields, kind }, 'scheduled task not stored: its id exists');
  }
}

/** Whether the queue's `max_pending` allows another task. */
export async function hasRoom(store: TaskStore, { name, config }: Queue): Promise<boolean> {
  const { max_pending: maxPending } = config.limits;
  return maxPending === 0 || (await store.counts(name)).pending < maxPending;
}

const defaultPriority = 4;
const defaultContentType = 'application/octet-stream';

/** The operation that wrote the schedule has checked the ids. */
function scheduledFlow(dependsOn: ScheduleDefinition['task']['depends_on']): Pick<NewTask, 'flow'> {
  if (!dependsOn?.length) return {};
  const listed = dependsOn.map((each) => {
    const { id, on = 'success' } = typeof each === 'string' ? { id: each } : each;
    return { id: id!.toUpperCase(), on };
  });
  return { flow: { dependsOn: listed } };
}

/** The task of a run. */
export function scheduledTask(
  { task }: ScheduleDefinition,
  queue: Queue,
  run: Run,
  by: string,
): NewTask {
  return {
    id: run.id,
    queue: queue.name,
    handlerRef: task.handler_ref,
    payload: Buffer.from(task.payload ?? '', 'base64'),
    payloadContentType: task.payload_content_type ?? defaultContentType,
    headers: task.headers ?? {},
    priority: task.priority ?? defaultPriority,
    groupKey: task.group_key ?? null,
    ...scheduledFlow(task.depends_on),
    dueAt: run.dueAt,
    expiresAt: null,
    submittedBy: by,
    maxPending: queue.config.limits.max_pending,
    options: taskOptions(task),
  };
}
