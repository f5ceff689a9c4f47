import type { ScheduleDefinition, ScheduleState } from '../src/core/schedule.js';
import type { InsertResult, RowBatch, RowKey, RowPut } from '../src/storage/port/task-store.js';
import type { Calendar } from './calendar.js';

export interface ScheduleWitnessOptions {
  calendar: Calendar;
  /** Whether a task is PENDING or IN_FLIGHT, or was a moment ago. */
  livenessOf: (id: string) => 'live' | 'redriven' | 'just_ended' | 'ended';
  demand: (holds: boolean, message: string, about: string) => void;
}

interface Known {
  definition: ScheduleDefinition;
  state: ScheduleState;
  ids: string[];
}

interface DueTimes {
  from: number;
  now: number;
  onTimeSince: number;
}

const graceMs = 10_000;
/** How long a server may take from its decision to the write of it. */
const maxWriteMs = 5_000;
const maxCaughtUp = 100;
/** A server remembers as many open tasks. */
const maxOpenIds = 100;
/** A server looks at its schedules this often. */
const maxLateMs = 10_000;

/** Checks that every occurrence of a schedule runs once, and that its policies are followed. */
/** A row of a schedule or a job, and what was written with it. */
export type RowWritten = RowPut & Pick<RowBatch, 'tasks' | 'now'>;

export class ScheduleWitness {
  readonly #schedules = new Map<string, Known>();
  /** What ran, also before a schedule was deleted and created again. */
  readonly #ran = new Map<string, Set<number>>();
  runs = 0;
  /** How often more than one run was due. */
  caughtUp = 0;
  skipped = 0;

  constructor(private readonly options: ScheduleWitnessOptions) {}

  /** An operator wrote the schedule; tasks that come with it are extra runs. */
  defined({ body, value, tasks = [], now, ...key }: RowWritten): void {
    const place = placeOf(key);
    const before = this.#schedules.get(place);
    const definition = (body ?? before?.definition) as ScheduleDefinition;
    const after = value as ScheduleState;
    const isRestarted = !before || before.state.anchor !== after.anchor;
    if (after.nextRunAt !== null && (isRestarted || before.state.paused)) {
      const next = this.options.calendar.next(definition, after.anchor, now);
      this.#demand(after.nextRunAt === next, `the first run is not at ${next}`, place);
    }
    const ids = [...(before?.ids ?? []), ...tasks.map(({ id }) => id)].slice(-maxOpenIds);
    this.#schedules.set(place, { definition, state: after, ids });
  }

  deleted(key: Omit<RowKey, 'table'>): void {
    this.#schedules.delete(placeOf(key));
  }

  /** A server that started `uptimeMs` ago made the runs that are due. */
  advanced(write: RowWritten, inserted: readonly InsertResult[], uptimeMs: number): void {
    const place = placeOf(write);
    const known = this.#schedules.get(place)!;
    const { definition, state: before } = known;
    const { calendar } = this.options;
    const { now, tasks = [] } = write;
    const after = write.value as ScheduleState;
    const isDue = before.nextRunAt !== null && before.nextRunAt <= now;
    const next = isDue ? calendar.next(definition, before.anchor, now) : before.nextRunAt;
    this.#demand(after.nextRunAt === next, `the next run is not at ${next}`, place);
    // What was due before the server started was missed.
    const knownMs = tasks.length > 0 ? uptimeMs : uptimeMs - maxWriteMs;
    const onTimeSince = now - Math.min(graceMs, knownMs);
    const due = isDue ? this.#due(known, { from: before.nextRunAt!, now, onTimeSince }) : [];
    const expected = this.#withoutOverlap(known, due, tasks.length > 0, place);
    const ran = this.#ran.get(place) ?? new Set();
    this.#ran.set(place, ran);
    const made = new Set<number>();
    for (const [i, { id, dueAt }] of tasks.entries()) {
      const from = dueAt - definition.jitter_ms;
      const at = calendar.occurrences(definition, before.anchor, from, dueAt).at(-1);
      const run = `${place} at ${at}`;
      this.#demand(at !== undefined, `a run at ${dueAt} is no occurrence`, place);
      const isStored = inserted[i]?.kind === 'stored';
      this.#demand(!isStored || !ran.has(at!), 'an occurrence ran twice', run);
      this.#demand(expected.includes(at!), 'an occurrence ran that was not due', run);
      if (!isStored && !ran.has(at!)) continue;
      made.add(at!);
      ran.add(at!);
      if (isStored) known.ids.push(id);
    }
    for (const at of expected) {
      this.#demand(made.has(at), 'an occurrence is lost', `${place} at ${at}`);
    }
    this.runs += made.size;
    known.ids.splice(0, known.ids.length - maxOpenIds);
    known.state = after;
  }

  /** At the end, when the servers have had time. */
  checkCaughtUp(now: number): void {
    for (const [place, { state }] of this.#schedules) {
      const isLate = state.nextRunAt !== null && state.nextRunAt < now - maxLateMs;
      this.#demand(!isLate, `a run is overdue since ${state.nextRunAt}`, place);
    }
  }

  #due({ definition, state }: Known, { from, now, onTimeSince }: DueTimes): number[] {
    const all = this.options.calendar.occurrences(definition, state.anchor, from, now);
    if (all.length > 1) this.caughtUp++;
    if (definition.catch_up === 'all') return all.slice(-maxCaughtUp);
    const last = all.slice(-1);
    return definition.catch_up === 'last' ? last : last.filter((at) => at >= onTimeSince);
  }

  #withoutOverlap(known: Known, due: number[], hasRun: boolean, place: string): number[] {
    if (known.definition.overlap === 'allow' || due.length === 0) return due;
    const liveness = known.ids.map((id) => this.options.livenessOf(id));
    if (hasRun) {
      // A server does not remember a task that it has seen dead, so a redriven one may overlap.
      this.#demand(!liveness.includes('live'), 'two tasks of a schedule overlap', place);
      return due.slice(-1);
    }
    const isSkipped = liveness.some((each) => each !== 'ended');
    this.#demand(isSkipped, 'a run was skipped though no other was open', place);
    this.skipped++;
    return [];
  }

  #demand(holds: boolean, message: string, about: string): void {
    this.options.demand(holds, message, about);
  }
}

function placeOf({ queue, key }: { queue: string; key: string }): string {
  return `${queue}/${key}`;
}
