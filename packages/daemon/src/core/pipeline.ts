import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp } from '@millrace/kit/units';
import { fail } from './api.js';

export type Pipeline = DaemonSchema<'Pipeline'>;
export type Job = DaemonSchema<'Job'>;
export type PipelineDefinition = DaemonSchema<'PipelineDefinition'>;

/** A pipeline as in the API, plus the internal state needed to run it. */
export interface PipelineState {
  pipeline: Pipeline;
  /** The user confirmed running over a spend cap. */
  force: boolean;
  /** How often each job was started. */
  runs: Readonly<Record<string, number>>;
}

/** Events of a job's session name the session, because an older session may still report. */
export type PipelineEvent =
  | { kind: 'start' }
  | { kind: 'cancel' }
  /** The engine has reached the job. It stays pending while the pipeline does not let it run. */
  | { kind: 'begin'; jobId: string }
  | { kind: 'spawned'; jobId: string; run: number; sessionId: string }
  /** The budget gate blocked the job. */
  | { kind: 'held'; jobId: string; run: number }
  /** The job could not be started at all. */
  | { kind: 'refused'; jobId: string; run: number; reason: string }
  /** The agent waits for input, or continues after it. */
  | { kind: 'waits' | 'works'; jobId: string; sessionId: string }
  | { kind: 'ended'; jobId: string; sessionId: string; isDone: boolean; output: string };

export interface Step {
  /** The identical object when nothing changed. */
  state: PipelineState;
  isChanged: boolean;
  /** Sessions to stop. */
  stops: string[];
}

/** Maximum number of concurrent jobs of one pipeline; the others wait. */
export const maxRunningJobs = 16;

export function newPipeline(
  { name, repo, jobs }: PipelineDefinition,
  { id, now }: { id: string; now: number },
): PipelineState {
  const at = formatTimestamp(now);
  return {
    pipeline: {
      id,
      name,
      repo: repo ?? null,
      status: 'pending',
      jobs: jobs.map((job) => ({
        id: job.id,
        prompt: job.prompt,
        backend: job.backend ?? null,
        depends_on: job.depends_on ?? [],
        run_if: job.run_if ?? 'success',
        status: 'pending',
        session_id: null,
        output: null,
      })),
      created_at: at,
      updated_at: at,
    },
    force: false,
    runs: {},
  };
}

/** Applies one event to a pipeline. Refuses a start or cancel that its status does not allow. */
export function stepPipeline(before: PipelineState, event: PipelineEvent, now: number): Step {
  const draft = new Draft(before);
  draft.apply(event);
  draft.settle();
  return draft.finish(now);
}

/** Mutable copy of the state during one step. */
class Draft {
  readonly #jobs: Job[];
  readonly #byId: ReadonlyMap<string, Job>;
  readonly #runs: Record<string, number>;
  readonly #stops: string[] = [];
  #status: Pipeline['status'];
  #force: boolean;
  #isChanged = false;

  constructor(private readonly before: PipelineState) {
    this.#jobs = before.pipeline.jobs.map((job) => ({ ...job }));
    this.#byId = new Map(this.#jobs.map((job) => [job.id, job]));
    this.#runs = { ...before.runs };
    this.#status = before.pipeline.status;
    this.#force = before.force;
  }

  apply(event: PipelineEvent): void {
    switch (event.kind) {
      case 'start':
        return this.#start();
      case 'cancel':
        return this.#cancel();
      case 'begin':
        return this.#begin(event.jobId);
      case 'spawned':
        return this.#spawned(event);
      case 'held':
      case 'refused':
        return this.#notSpawned(event);
      case 'waits':
      case 'works': {
        const [from, to] = event.kind === 'waits' ? waiting : working;
        const job = this.#jobOf(event);
        if (job?.status === from) this.#move(job, { status: to });
        return;
      }
      case 'ended':
        return this.#ended(event);
    }
  }

  /** Skips jobs that can never run, and updates the pipeline's status. */
  settle(): void {
    if (!isUnderWay(this.#status)) return;
    let hasSkipped: boolean;
    do {
      hasSkipped = false;
      for (const job of this.#jobs) {
        if (job.status !== 'pending' || this.#outlook(job) !== 'never') continue;
        this.#move(job, { status: 'skipped' });
        hasSkipped = true;
      }
    } while (hasSkipped);
    this.#setStatus(this.#statusNow());
  }

  finish(now: number): Step {
    const [stops, isChanged] = [this.#stops, this.#isChanged];
    if (!isChanged) return { state: this.before, isChanged, stops };
    const pipeline = {
      ...this.before.pipeline,
      status: this.#status,
      jobs: this.#jobs,
      updated_at: formatTimestamp(now),
    };
    return { state: { pipeline, force: this.#force, runs: this.#runs }, isChanged, stops };
  }

  #start(): void {
    switch (this.#status) {
      case 'done':
      case 'canceled':
        throw this.#wrongStatus('cannot be started again. Create a new pipeline.');
      case 'running':
        return;
      case 'paused':
        this.#force = true;
        break;
      case 'stalled':
        this.#runAgain();
        break;
      case 'pending':
        break;
    }
    this.#setStatus('running');
    for (const { id } of this.#jobs) this.#begin(id);
  }

  /** Resets every job that is not done, including those skipped because of a failed one. */
  #runAgain(): void {
    for (const job of this.#jobs) {
      if (job.status === 'done') continue;
      if (job.status === 'needs_attention') this.#stops.push(job.session_id!);
      this.#move(job, { status: 'pending', session_id: null, output: null });
    }
  }

  #cancel(): void {
    if (this.#status === 'canceled') return;
    if (this.#status === 'done') throw this.#wrongStatus('cannot be canceled.');
    for (const job of this.#jobs) {
      if (job.status === 'pending') this.#move(job, { status: 'skipped' });
      if (!isAtWork(job)) continue;
      // A session that is still being spawned is stopped once its id is known.
      if (job.session_id !== null) this.#stops.push(job.session_id);
      this.#move(job, { status: 'failed' });
    }
    this.#setStatus('canceled');
  }

  #begin(jobId: string): void {
    const job = this.#byId.get(jobId);
    if (job?.status !== 'pending' || !isUnderWay(this.#status) || this.#status === 'paused') return;
    const running = this.#jobs.filter(({ status }) => status === 'running').length;
    if (running >= maxRunningJobs || this.#outlook(job) !== 'now') return;
    this.#runs[jobId] = (this.#runs[jobId] ?? 0) + 1;
    this.#move(job, { status: 'running', session_id: null, output: null });
  }

  #spawned({ jobId, run, sessionId }: Extract<PipelineEvent, { kind: 'spawned' }>): void {
    const job = this.#byId.get(jobId);
    const isCurrent = job !== undefined && this.#runs[jobId] === run && job.session_id === null;
    if (isCurrent) this.#move(job, { session_id: sessionId });
    if (isCurrent && job.status === 'running') return;
    if (job?.session_id !== sessionId || !isAtWork(job)) this.#stops.push(sessionId);
  }

  #notSpawned(event: Extract<PipelineEvent, { kind: 'held' | 'refused' }>): void {
    const job = this.#byId.get(event.jobId);
    if (job?.status !== 'running' || job.session_id !== null) return;
    if (this.#runs[job.id] !== event.run) return;
    if (event.kind === 'refused') {
      this.#move(job, { status: 'failed', output: event.reason });
      return;
    }
    this.#move(job, { status: 'pending' });
    // A confirmation that came meanwhile covers this job too.
    if (!this.#force) this.#setStatus('paused');
  }

  #ended(event: Extract<PipelineEvent, { kind: 'ended' }>): void {
    const job = this.#jobOf(event);
    if (!job) return;
    const { output } = event;
    if (isAtWork(job)) this.#move(job, { status: event.isDone ? 'done' : 'failed', output });
    else if (job.status === 'failed' && job.output === null) this.#move(job, { output });
  }

  /** May a pending job run now, later, or never? */
  #outlook({ depends_on, run_if }: Job): 'now' | 'later' | 'never' {
    const before = depends_on.map((id) => this.#byId.get(id)!.status);
    const hasMissed = before.some((status) => status === 'failed' || status === 'skipped');
    if (run_if === 'success' && hasMissed) return 'never';
    if (!before.every(isEnd)) return 'later';
    return run_if === 'failure' && !before.includes('failed') ? 'never' : 'now';
  }

  #statusNow(): Pipeline['status'] {
    const has = (status: Job['status']) => this.#jobs.some((job) => job.status === status);
    if (this.#jobs.every(({ status }) => status === 'done' || status === 'skipped')) return 'done';
    // A paused pipeline waits for confirmation, whatever its running jobs do.
    if (this.#status === 'paused') return 'paused';
    const isReady = (job: Job) => job.status === 'pending' && this.#outlook(job) === 'now';
    return has('running') || this.#jobs.some(isReady) ? 'running' : 'stalled';
  }

  #jobOf({ jobId, sessionId }: { jobId: string; sessionId: string }): Job | undefined {
    const job = this.#byId.get(jobId);
    return job?.session_id === sessionId ? job : undefined;
  }

  #move(job: Job, change: Partial<Job>): void {
    Object.assign(job, change);
    this.#isChanged = true;
  }

  #setStatus(status: Pipeline['status']): void {
    if (status === this.#status) return;
    this.#status = status;
    this.#isChanged = true;
  }

  #wrongStatus(why: string) {
    const { id, status } = this.before.pipeline;
    return fail('PIPELINE_STATE', `The pipeline "${id}" is ${status} and ${why}`);
  }
}

const waiting = ['running', 'needs_attention'] as const;
const working = ['needs_attention', 'running'] as const;

export function isEnd(status: Job['status']): boolean {
  return status === 'done' || status === 'failed' || status === 'skipped';
}

export function isAtWork({ status }: Job): boolean {
  return status === 'running' || status === 'needs_attention';
}

function isUnderWay(status: Pipeline['status']): boolean {
  return status === 'running' || status === 'paused' || status === 'stalled';
}
