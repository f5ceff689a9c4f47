import type { Simulation } from '@millrace/kit/simulation';
import { scheduledTask } from '../src/background/index.js';
import {
  endedJob,
  jobAct,
  newJobState,
  type JobDefinition,
  type JobState,
} from '../src/core/job.js';
import {
  newScheduleState,
  withPause,
  withRuns,
  type ScheduleDefinition,
  type ScheduleState,
} from '../src/core/schedule.js';
import {
  removalOf,
  type Row,
  type RowBatch,
  type RowPut,
  type TaskStore,
} from '../src/storage/port/task-store.js';
import type { Calendar } from './calendar.js';
import { manners } from './queues.js';
import type { Servers } from './servers.js';

const queues = [...manners.keys()];
const names = ['one', 'two'];

/** Simulated operators of schedules and jobs. */
export class RecordOperator {
  constructor(
    private readonly world: Simulation,
    private readonly store: TaskStore,
    private readonly servers: Servers,
    private readonly calendar: Calendar,
  ) {}

  /** Creates a schedule, or changes, pauses, resumes, runs or deletes it. */
  async tendSchedule(): Promise<void> {
    const { world } = this;
    const key = { table: 'schedule', queue: this.#pick(queues), key: this.#pick(names) } as const;
    const [record] = await this.store.listRows({ ...key, hasBodies: true });
    if (!record || world.chance(0.3)) return this.#putSchedule(key, record);
    if (world.chance(0.1)) {
      const removals = [removalOf(key)];
      return void (await this.store.writeRows({ removals, now: world.clock.now() }));
    }
    if (world.chance(0.3)) return this.#runNow(record);
    const { paused } = record.value as ScheduleState;
    return this.#setPaused(record, !paused);
  }

  async pauseAll(): Promise<void> {
    for (;;) {
      const records = await this.store.listRows({ table: 'schedule', hasBodies: true });
      const running = records.filter(({ value }) => !(value as ScheduleState).paused);
      if (running.length === 0) return;
      for (const record of running) await this.#setPaused(record, true);
    }
  }

  /** Creates a job where the most tasks are dead, and perhaps cancels it soon after. */
  async createJob(): Promise<void> {
    const { world, store } = this;
    const counts = new Map<string, number>();
    for (const queue of queues) counts.set(queue, (await store.counts(queue)).dead);
    const [queue] = queues.toSorted((a, b) => counts.get(b)! - counts.get(a)!);
    const now = world.clock.now();
    const key = { table: 'job', queue: queue!, key: world.random.ulid(now) } as const;
    const body = await this.#newJob(key.queue, now);
    const audit = jobAct(key, body, null);
    await this.#write({ ...key, revision: 0 }, { body, value: newJobState }, { audit });
    if (world.chance(0.7)) return;
    await world.clock.sleep(world.between([0, 40]));
    const [record] = await store.listRows(key);
    const before = record!.value as JobState;
    if (before.status !== 'running') return;
    const value = endedJob(before, 'cancelled', world.clock.now());
    await this.#write(record!, { value }, { audit: jobAct(key, body, value.count) });
  }

  async #putSchedule(
    key: { table: 'schedule'; queue: string; key: string },
    record: Row | undefined,
  ): Promise<void> {
    const { world } = this;
    const now = world.clock.now();
    const before = record && {
      definition: record.body as ScheduleDefinition,
      state: record.value as ScheduleState,
    };
    const timing =
      before && world.chance(0.5) ? before.definition : this.calendar.randomTiming(world);
    const { cron, every_ms, timezone } = timing;
    const body: ScheduleDefinition = {
      ...(cron === undefined ? { every_ms: every_ms! } : { cron }),
      timezone,
      overlap: world.chance(0.5) ? 'skip' : 'allow',
      catch_up: this.#pick(['none', 'last', 'all'] as const),
      // Shorter than the shortest interval.
      jitter_ms: world.chance(0.3) ? world.between([1, 999]) : 0,
      description: '',
      task: { handler_ref: 'scheduled' },
    };
    const value = newScheduleState(body, before, { now, by: 'operator' });
    await this.#write({ ...key, revision: record?.revision ?? 0 }, { body, value });
  }

  async #runNow(record: Row): Promise<void> {
    const queue = await this.store.getQueue(record.queue);
    const now = this.world.clock.now();
    const run = { id: this.world.random.ulid(now), at: now, dueAt: now };
    const tasks = [scheduledTask(record.body as ScheduleDefinition, queue!, run, 'operator')];
    await this.#write(record, { value: withRuns(record.value as ScheduleState, [run]) }, { tasks });
  }

  #setPaused(record: Row, paused: boolean): Promise<void> {
    const now = this.world.clock.now();
    const { body, value } = record;
    const next = withPause(body as ScheduleDefinition, value as ScheduleState, paused, now);
    return this.#write(record, { value: next });
  }

  async #newJob(queue: string, now: number): Promise<JobDefinition> {
    const { world, store } = this;
    const kind = world.between([1, 4]);
    const query = { queue, filter: {}, order: 'newest_first' as const, limit: 5, maxBytes: 1e9 };
    const target =
      kind === 1
        ? { ids: (await store.deadTasks(query)).tasks.map(({ id }) => id) }
        : { filter: kind === 2 ? { diedBefore: now - world.between([0, 30_000]) } : {} };
    return {
      action: world.chance(0.7) ? 'redrive' : 'purge',
      selector: {},
      target,
      gapMs: world.between([0, 500]),
      by: 'operator',
    };
  }

  /** If a server wrote the record in the meantime, nothing happens. */
  async #write(
    { table, queue, key, revision }: Pick<Row, 'table' | 'queue' | 'key' | 'revision'>,
    put: Pick<RowPut, 'body' | 'value'>,
    rest: Pick<RowBatch, 'tasks' | 'audit'> = {},
  ): Promise<void> {
    const now = this.world.clock.now();
    const puts = [{ table, queue, key, ifRevision: revision, ...put }];
    await this.store.writeRows({ puts, now, ...rest });
    for (const server of this.servers.backgrounds()) {
      if (this.world.chance(0.5)) continue;
      if (table === 'schedule') server.schedulesChanged();
      else server.jobsChanged();
    }
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[this.world.between([0, choices.length - 1])]!;
  }
}
