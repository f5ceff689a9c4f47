import type { Database } from '@millrace/engine';
import { Refusal } from '@millrace/kit/errors';
import { nearest } from '@millrace/kit/nearest';
import type { World } from '@millrace/kit/world';
import {
  newPipeline,
  stepPipeline,
  type Pipeline,
  type PipelineCommand,
  type PipelineDefinition,
  type PipelineEvent,
  type PipelineState,
} from '../core/pipeline.js';
import { fail } from '../core/api.js';
import { isSamePhase, phaseOf } from '../core/session.js';
import type { Backends } from '../registry/backends.js';
import type { Session, Sessions, SpawnOrigin, SpawnRequest } from '../sessions/port.js';
import { checkDefinition, checkRepo, tailOf, promptOf } from './definition.js';
import { BackgroundTasks } from '../core/turns.js';
import { PipelineStore } from './store.js';

export interface PipelinesParts {
  world: World;
  database: Database;
  sessions: Sessions;
  backends: Pick<Backends, 'read'>;
}

/* Limits of definition and outputs, so that a record stays below its maximum of 2 MiB. */
const maxDefinitionBytes = 1_310_720;
const maxTotalOutputBytes = 655_360;
const maxJobOutputBytes = 16_384;
const outputLines = 1_000;
const maxNameLength = 128;

/** Runs the jobs of pipelines as sessions, in order of their dependencies. */
export class Pipelines {
  readonly #parts: PipelinesParts;
  readonly #store: PipelineStore;
  readonly #tasks: BackgroundTasks;
  #stopListening: (() => void) | undefined;

  private constructor(parts: PipelinesParts, store: PipelineStore) {
    this.#parts = parts;
    this.#store = store;
    this.#tasks = new BackgroundTasks((error, about) => {
      parts.world.log.error({ err: error, ...about }, 'pipeline stuck');
    });
  }

  /** Resumes the stored pipelines; the sessions must be adopted before. */
  static async open(parts: PipelinesParts): Promise<Pipelines> {
    const pipelines = new Pipelines(parts, new PipelineStore(parts.database));
    await pipelines.#resume();
    return pipelines;
  }

  /** Stops listening to sessions, starts nothing new, and waits for running work. */
  async close(): Promise<void> {
    this.#stopListening?.();
    await this.#tasks.close();
  }

  list(): Promise<Pipeline[]> {
    return this.#store.list();
  }

  async get(id: string): Promise<Pipeline> {
    const found = await this.#store.find(id);
    if (!found) throw notFound(id);
    return found.pipeline;
  }

  async create(definition: PipelineDefinition): Promise<Pipeline> {
    checkDefinition(definition);
    await checkRepo(definition);
    await this.#checkBackends(definition);
    const { clock, random } = this.#parts.world;
    const now = clock.now();
    const fresh = newPipeline(definition, { id: random.ulid(now), now });
    checkSize(fresh.pipeline);
    const isStarted = definition.start !== false;
    const { state, commands } = isStarted
      ? stepPipeline(fresh, { kind: 'start' }, now)
      : { state: fresh, commands: [] };
    await this.#store.insert(state);
    this.#carryOut(state, commands);
    return state.pipeline;
  }

  start(id: string): Promise<Pipeline> {
    return this.#send(id, { kind: 'start' });
  }

  cancel(id: string): Promise<Pipeline> {
    return this.#send(id, { kind: 'cancel' });
  }

  async #checkBackends({ jobs }: PipelineDefinition): Promise<void> {
    const ids = (await this.#parts.backends.read()).backends.map(({ id }) => id);
    for (const [index, { backend }] of jobs.entries()) {
      if (backend === undefined || ids.includes(backend)) continue;
      const meant = nearest(backend, ids);
      const hint =
        meant === undefined ? 'GET /api/v1/backends lists them.' : `did you mean ${meant}?`;
      throw fail(
        'BACKEND_NOT_FOUND',
        `/jobs/${index}: backend "${backend}" does not exist; ${hint}`,
      );
    }
  }

  /** Applies one event to a pipeline; the result is on disk when this resolves. */
  async #send(id: string, event: PipelineEvent): Promise<Pipeline> {
    const step = await this.#store.change(id, (state, now) => stepPipeline(state, event, now));
    if (!step) throw notFound(id);
    this.#carryOut(step.state, step.commands);
    return step.state.pipeline;
  }

  #carryOut(state: PipelineState, commands: readonly PipelineCommand[]): void {
    const { id } = state.pipeline;
    for (const command of commands) {
      const about = { pipeline: id, command: command.kind };
      if (command.kind === 'spawn') {
        this.#tasks.run(about, () => this.#spawn(state, command));
      } else this.#tasks.run(about, () => this.#stop(command.sessionId));
    }
  }

  async #spawn(
    { pipeline, force }: PipelineState,
    { jobId, run }: { jobId: string; run: number },
  ): Promise<void> {
    const { id } = pipeline;
    const job = pipeline.jobs.find((each) => each.id === jobId)!;
    const request: SpawnRequest = {
      prompt: promptOf(job, pipeline.jobs),
      name: `${pipeline.name}: ${jobId}`.slice(0, maxNameLength).toWellFormed(),
      // Headless, because a job must end by itself; an interactive agent waits for input.
      driver: 'headless',
      ...(job.backend !== null && { backend: job.backend }),
      ...(pipeline.repo !== null && { repo: pipeline.repo }),
      ...(force && { force }),
    };
    const origin = {
      idempotencyKey: `pipeline:${id}:${jobId}:${run}`,
      pipeline: { id, jobId },
    };
    let session: Session;
    try {
      session = await this.#startSession(request, origin);
    } catch (error) {
      // A job that did not start because of shutdown is started at the next start.
      if (this.#tasks.isClosed) return;
      await this.#send(id, this.#notSpawned({ jobId, run }, error));
      return;
    }
    await this.#send(id, { kind: 'spawned', jobId, run, sessionId: session.id });
    this.#follow(session);
  }

  /** Headless if possible: some programs accept a long prompt only interactively. */
  async #startSession(request: SpawnRequest, origin: SpawnOrigin): Promise<Session> {
    const { sessions } = this.#parts;
    try {
      return (await sessions.spawn(request, origin)).session;
    } catch (error) {
      if (!isAboutPrompt(error)) throw error;
      const inTerminal = { ...request, driver: 'tmux' } as const;
      const started = await sessions.spawn(inTerminal, origin).catch(() => undefined);
      if (!started) throw error;
      return started.session;
    }
  }

  #notSpawned(which: { jobId: string; run: number }, error: unknown): PipelineEvent {
    if (!(error instanceof Refusal)) {
      this.#parts.world.log.error({ err: error, job: which.jobId }, 'failed to start job');
      return { kind: 'refused', ...which, reason: 'The daemon failed to start it. See its log.' };
    }
    if (error.code === 'BUDGET_CONFIRMATION_REQUIRED') return { kind: 'held', ...which };
    return { kind: 'refused', ...which, reason: `${error.code}: ${error.detail}` };
  }

  async #stop(sessionId: string): Promise<void> {
    try {
      await this.#parts.sessions.stop(sessionId);
    } catch (error) {
      // A deleted session is already stopped.
      if (!(error instanceof Refusal && error.code === 'SESSION_NOT_FOUND')) throw error;
    }
  }

  /** Schedules a check of a session; several changes may share one check. */
  #follow({ id, pipeline_id, job_id }: Pick<Session, 'id' | 'pipeline_id' | 'job_id'>): void {
    if (pipeline_id === null || job_id === null) return;
    const about = { pipeline: pipeline_id, job: job_id, session: id };
    this.#tasks.runLatest(id, about, () => this.#checkSession(pipeline_id, job_id, id));
  }

  async #checkSession(pipelineId: string, jobId: string, sessionId: string): Promise<void> {
    const which = { jobId, sessionId };
    const session = await this.#parts.sessions.find(sessionId);
    if (!session) {
      const output = 'Its session was deleted.';
      await this.#handleEvent(pipelineId, { kind: 'ended', ...which, isDone: false, output });
      return;
    }
    const phase = phaseOf(session);
    if (phase === 'works') await this.#handleEvent(pipelineId, { kind: 'works', ...which });
    else if (phase === 'waits' || (phase === 'limited' && session.pid !== null)) {
      await this.#handleEvent(pipelineId, { kind: 'waits', ...which });
    } else {
      const output = await this.#outputOf(session, pipelineId);
      const isDone = phase === 'done';
      const wasOurs = await this.#isAtWork(pipelineId, sessionId);
      await this.#handleEvent(pipelineId, { kind: 'ended', ...which, isDone, output });
      // Stop the idle agent, which would wait for input forever.
      if (wasOurs && session.status === 'idle') await this.#stop(sessionId);
    }
  }

  async #isAtWork(pipelineId: string, sessionId: string): Promise<boolean> {
    const { jobs = [] } = (await this.#store.find(pipelineId))?.pipeline ?? {};
    const job = jobs.find(({ session_id }) => session_id === sessionId);
    return job?.status === 'running' || job?.status === 'needs_attention';
  }

  /** Events of deleted pipelines are ignored. */
  async #handleEvent(id: string, event: PipelineEvent): Promise<void> {
    if (await this.#store.find(id)) await this.#send(id, event);
  }

  async #outputOf({ id, last_error }: Session, pipelineId: string): Promise<string> {
    const { lines } = await this.#parts.sessions.output(id, { limit: outputLines });
    const jobs = (await this.#store.find(pipelineId))?.pipeline.jobs.length ?? 1;
    const most = Math.min(maxJobOutputBytes, Math.floor(maxTotalOutputBytes / jobs));
    return tailOf(lines.join('\n'), most) || tailOf(last_error ?? '', most);
  }

  /** Resumes after a restart of the daemon. */
  async #resume(): Promise<void> {
    const { sessions } = this.#parts;
    this.#stopListening = sessions.onChange(({ before, after }) => {
      const session = after ?? before;
      if (session && !isSamePhase(before, after)) this.#follow(session);
    });
    const all = await sessions.list();
    for (const { id, status } of await this.#store.list()) {
      if (status === 'pending' || status === 'done') continue;
      const ours = all.filter((session) => session.pipeline_id === id);
      if (status === 'canceled') this.#stopLeftovers(ours);
      else await this.#goOn(id);
    }
  }

  /** Stops sessions that were being spawned when their pipeline was canceled. */
  #stopLeftovers(sessions: readonly Session[]): void {
    for (const { id, status } of sessions) {
      if (status === 'done' || status === 'errored' || status === 'orphaned') continue;
      this.#tasks.run({ session: id }, () => this.#stop(id));
    }
  }

  async #goOn(id: string): Promise<void> {
    const state = (await this.#store.find(id))!;
    for (const job of state.pipeline.jobs) {
      if (job.status !== 'running' && job.status !== 'needs_attention') continue;
      if (job.session_id === null) {
        // The same idempotency key: a session that was already started is reused.
        const again = { kind: 'spawn', jobId: job.id, run: state.runs[job.id]! } as const;
        this.#carryOut(state, [again]);
      } else this.#follow({ id: job.session_id, pipeline_id: id, job_id: job.id });
    }
  }
}

function isAboutPrompt(error: unknown): boolean {
  if (!(error instanceof Refusal) || error.code !== 'INVALID_REQUEST') return false;
  return error.extra.errors?.some(({ pointer }) => pointer === '/prompt') ?? false;
}

function checkSize(pipeline: Pipeline): void {
  const bytes = Buffer.byteLength(JSON.stringify(pipeline));
  if (bytes <= maxDefinitionBytes) return;
  throw fail(
    'PAYLOAD_TOO_LARGE',
    `The pipeline has ${bytes} bytes; the maximum is ${maxDefinitionBytes}. ` +
      'Shorten the prompts or split the pipeline.',
  );
}

function notFound(id: string): Error {
  return fail(
    'PIPELINE_NOT_FOUND',
    `Pipeline "${id}" does not exist. GET /api/v1/pipelines lists all pipelines.`,
  );
}
