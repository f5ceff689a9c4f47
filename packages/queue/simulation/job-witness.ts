import type { AuditRecord } from '../src/core/audit.js';
import type { JobDefinition, JobState, JobStatus } from '../src/core/job.js';
import type { RowKey } from '../src/storage/port/task-store.js';
import type { RowWritten } from './schedule-witness.js';

/** A dead task; `deaths` tells one death of it from the next. */
export interface Death {
  id: string;
  deadAt: number;
  deaths: number;
}

export interface JobWitnessOptions {
  deadIn: (queue: string) => readonly Death[];
  /** Whether the store still has the task, dead since that time. */
  isStillDead: (death: Death) => Promise<boolean>;
  /** Deaths are ordered by the wall clock, so a task can die again before the job was created. */
  clocksJump: boolean;
  demand: (holds: boolean, message: string, about: string) => void;
}

interface Known {
  createdAt: number;
  status: JobStatus;
  /** What it must handle, unless somebody else does. */
  matching: readonly Death[];
  handled: Set<string>;
}

/** Checks that a job handles each task that it selects once, and counts them. */
export class JobWitness {
  readonly #jobs = new Map<string, Known>();
  steps = 0;
  done = 0;
  cancelled = 0;

  constructor(private readonly options: JobWitnessOptions) {}

  get areAllEnded(): boolean {
    return [...this.#jobs.values()].every(({ status }) => status !== 'running');
  }

  async written({ key: name, queue, body, value, now }: RowWritten): Promise<void> {
    const known = this.#jobs.get(name);
    if (!known) {
      const definition = body as JobDefinition;
      const isMatch = matcherOf(definition, now);
      const matching = this.options.deadIn(queue).filter(isMatch);
      this.#jobs.set(name, { createdAt: now, status: 'running', matching, handled: new Set() });
      return;
    }
    const { status, count } = value as JobState;
    if (status === 'running') return;
    this.#demand(known.status === 'running', `a ${known.status} job ended again`, name);
    known.status = status;
    const { size } = known.handled;
    this.#demand(count === size, `a job counts ${count} tasks and changed ${size}`, name);
    this.#demand(status !== 'failed', 'a job failed', name);
    if (status === 'cancelled') this.cancelled++;
    if (status !== 'done') return;
    this.done++;
    for (const death of known.matching) {
      if (known.handled.has(death.id)) continue;
      const isLeft = await this.options.isStillDead(death);
      this.#demand(!isLeft, `a job ended without ${death.id}`, name);
    }
  }

  /** Before the tasks are changed in the model. */
  stepped({ key: name, queue }: RowKey, ids: readonly string[]): void {
    const known = this.#jobs.get(name)!;
    this.#demand(known.status === 'running', `a ${known.status} job made a step`, name);
    const deaths = new Map(this.options.deadIn(queue).map((death) => [death.id, death]));
    for (const id of ids) {
      const deadAt = deaths.get(id)?.deadAt;
      const isOld = deadAt !== undefined && deadAt <= known.createdAt;
      this.#demand(isOld, `a job changed ${id}, which was not dead at its creation`, name);
      const isRepeated = known.handled.has(id) && !this.options.clocksJump;
      this.#demand(!isRepeated, `a job handled ${id} twice`, name);
      known.handled.add(id);
    }
    this.steps++;
  }

  /** The start and the end of each job are audited once. */
  checkAudit(records: readonly AuditRecord[]): void {
    for (const [name, { handled, status }] of this.#jobs) {
      const acts = records.filter(({ selector }) => selector?.['job'] === name);
      const counts = acts.map(({ count }) => count);
      const expected = status === 'running' ? [null] : [null, handled.size];
      const isWhole = JSON.stringify(counts) === JSON.stringify(expected);
      this.#demand(isWhole, `a job is audited with the counts ${counts.join(', ')}`, name);
    }
  }

  #demand(holds: boolean, message: string, about: string): void {
    this.options.demand(holds, message, about);
  }
}

function matcherOf({ target }: JobDefinition, createdAt: number): (death: Death) => boolean {
  const ids = 'ids' in target ? new Set(target.ids) : undefined;
  const { diedFrom = 0, diedBefore = Infinity } = 'filter' in target ? target.filter : {};
  return ({ id, deadAt }) =>
    deadAt <= createdAt &&
    deadAt >= diedFrom &&
    deadAt < diedBefore &&
    (ids === undefined || ids.has(id));
}
