import type { Database } from '@millrace/engine';
import { Refusal } from '@millrace/kit/errors';
import { nearest } from '@millrace/kit/nearest';
import type { World } from '@millrace/kit/world';
import {
  isAtWork,
  isEnd,
  newPipeline,
  stepPipeline,
  type Job,
  type Pipeline,
  type PipelineDefinition,
  type PipelineEvent,
  type PipelineState,
} from '../core/pipeline.js';
import { fail } from '../core/api.js';
import { isEnded, isSamePhase, phaseOf } from '../core/session.js';
import { BackgroundTasks, Turns, untilFound } from '../core/turns.js';
import { spawnToEnd } from '../plans/agent-steps.js';
import type { AgentFlows } from '../plans/engine.js';
import type { Backends } from '../registry/backends.js';
import { answerOf, stopSession, tailOf } from '../sessions/answer.js';
import type { Session, Sessions, SpawnRequest } from '../sessions/port.js';
import { checkDefinition, checkRepo, promptOf } from './definition.js';
import { PipelineStore } from './store.js';

export interface PipelinesParts {
  world: World;
  database: Database;
  flows: AgentFlows;
  sessions: Sessions;
  backends: Pick<Backends, 'read'>;
}

/* Limits of definition and outputs, so that a record stays below its maximum of 2 MiB. */
const maxDefinitionBytes = 1_310_720;
const maxTotalOutputBytes = 655_360;
const maxJobOutputBytes = 16_384;
const maxNameLength = 128;
/** Of a task in a flow; a job waits for the others by itself. */
const maxDependencies = 100;
/** A start waits this long at most for the engine to reach its first jobs. */
const maxLaunchMs = 5_000;

/**
 * Pipelines: each start of one is a flow of the engine that runs plans, with a task for every job
 * that has not ended. The flow decides when a job's turn has come; the stored pipeline says what
 * becomes of it, so a flow that was lost or is repeated does no harm.
 */
export class Pipelines {
  readonly #tasks: BackgroundTasks;
  /** The flow of each pipeline; the tasks of its earlier flows have nothing left to do. */
  readonly #rounds = new Map<string, string>();
  /** A task of an earlier flow may still run a step of the same job. */
  readonly #turns = new Turns();
  readonly #listeners = new Set<(id: string) => void>();
  readonly #running = new Set<Promise<unknown>>();
  /** Called when the engine reaches a job, by pipeline and job. */
  readonly #reached = new Map<string, () => void>();
  #stopListening: (() => void) | undefined;

  private constructor(
    private readonly parts: PipelinesParts,
    private readonly store: PipelineStore,
  ) {
    this.#tasks = new BackgroundTasks((error, about) => {
      parts.world.log.error({ err: error, ...about }, 'pipeline stuck');
    });
    parts.flows.handle({
      'pipeline.job': ({ payload: { pipeline, job, round }, signal }) =>
        this.#runJob(pipeline, job, round, signal),
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
    const closed = this.#tasks.close();
    for (const id of this.#rounds.keys()) this.#wake(id);
    await Promise.allSettled([closed, ...this.#running]);
  }

  list(): Promise<Pipeline[]> {
    return this.store.list();
  }

  async get(id: string): Promise<Pipeline> {
    const found = await this.store.find(id);
    if (!found) throw notFound(id);
    return found.pipeline;
  }

  async create(definition: PipelineDefinition): Promise<Pipeline> {
    checkDefinition(definition);
    await checkRepo(definition);
    await this.#checkBackends(definition);
    const { clock, random } = this.parts.world;
    const now = clock.now();
    const fresh = newPipeline(definition, { id: random.ulid(now), now });
    checkSize(fresh.pipeline);
    if (definition.start === false) {
      await this.store.insert(fresh);
      return fresh.pipeline;
    }
    await this.parts.flows.queue();
    const { state } = stepPipeline(fresh, { kind: 'start' }, now);
    await this.store.insert(state);
    await this.#launchFirst(state.pipeline);
    return state.pipeline;
  }

  async start(id: string): Promise<Pipeline> {
    await this.parts.flows.queue();
    const { state, isChanged } = await this.#send(id, { kind: 'start' });
    if (isChanged) await this.#launchFirst(state.pipeline);
    return state.pipeline;
  }

  async cancel(id: string): Promise<Pipeline> {
    return (await this.#send(id, { kind: 'cancel' })).state.pipeline;
  }

  async #checkBackends({ jobs }: PipelineDefinition): Promise<void> {
    const ids = (await this.parts.backends.read()).backends.map(({ id }) => id);
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
  async #send(id: string, event: PipelineEvent) {
    const step = await this.store.change(id, (state, now) => stepPipeline(state, event, now));
    if (!step) throw notFound(id);
    for (const session of step.stops)
      this.#tasks.run({ session }, () => stopSession(this.parts.sessions, session));
    if (step.isChanged) this.#wake(id);
    return step;
  }

  #wake(id: string): void {
    for (const listener of this.#listeners) listener(id);
  }

  /** Submits what is left of a pipeline as a flow, in the place of an earlier one. */
  async #launch({ id, jobs }: Pipeline): Promise<void> {
    const { flows, world } = this.parts;
    const round = world.random.ulid(world.clock.now());
    const flow = (await flows.queue()).flow(round);
    const left = new Map(jobs.filter((job) => !isEnd(job.status)).map((job) => [job.id, job]));
    for (const [job, { depends_on }] of left) {
      const before = depends_on.filter((key) => left.has(key)).slice(0, maxDependencies);
      const after = before.map((key) => ({ key, on: 'end' as const }));
      flow.task(job, 'pipeline.job', { pipeline: id, job, round }, { after });
    }
    this.#rounds.set(id, round);
    await flow.submit();
    this.#wake(id);
  }

  /** Resolves when the engine has reached the jobs that run at once, so that they are spawned. */
  async #launchFirst(pipeline: Pipeline): Promise<void> {
    const first = pipeline.jobs.filter((job) => isAtWork(job) && job.session_id === null);
    const reached = first.map(
      ({ id }) =>
        new Promise<void>((resolve) => this.#reached.set(`${pipeline.id}:${id}`, resolve)),
    );
    await this.#launch(pipeline);
    await new Promise<void>((resolve) => {
      const timer = this.parts.world.clock.after(maxLaunchMs, resolve);
      void Promise.all(reached).then(() => (timer.cancel(), resolve()));
    });
  }

  /** The task of a job: it is over when the job has ended, or another flow has taken its place. */
  async #runJob(id: string, jobId: string, round: string, signal: AbortSignal): Promise<void> {
    const onChange = (wake: () => void) => {
      const listener = (changed: string) => changed === id && wake();
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    };
    const running = untilFound({ onChange, signal }, () =>
      this.#turns.in(`${id}:${jobId}`, () => this.#advance(id, jobId, round)),
    );
    this.#running.add(running);
    await running.finally(() => this.#running.delete(running));
  }

  /** One step of a job; true when there is nothing left to do. */
  async #advance(id: string, jobId: string, round: string): Promise<true | undefined> {
    const state = await this.store.find(id);
    const job = state?.pipeline.jobs.find((each) => each.id === jobId);
    if (!state || !job || this.#tasks.isClosed || this.#rounds.get(id) !== round) return true;
    this.#reached.get(`${id}:${jobId}`)?.();
    this.#reached.delete(`${id}:${jobId}`);
    const { status, session_id: sessionId, output } = job;
    if (status === 'pending') {
      // The next start is another flow.
      if (state.pipeline.status === 'paused') return true;
      const begin = { kind: 'begin', jobId } as const;
      if (stepPipeline(state, begin, 0).isChanged) await this.#send(id, begin);
    } else if (!isAtWork(job) && (status !== 'failed' || output !== null || sessionId === null)) {
      return true;
    } else if (sessionId === null) await this.#spawn(state, job);
    // Also of a canceled job, whose agent may have said something.
    else await this.#checkSession(state.pipeline, job, sessionId);
    return undefined;
  }

  async #spawn({ pipeline, force, runs }: PipelineState, job: Job): Promise<void> {
    const { id, repo, name } = pipeline;
    const { id: jobId, backend } = job;
    const run = runs[jobId]!;
    const request: SpawnRequest = {
      prompt: promptOf(job, pipeline.jobs),
      name: `${name}: ${jobId}`.slice(0, maxNameLength).toWellFormed(),
      ...(backend !== null && { backend }),
      ...(repo !== null && { repo }),
      ...(force && { force }),
    };
    // After a crash, a session that was already started is reused.
    const origin = { idempotencyKey: `pipeline:${id}:${jobId}:${run}`, pipeline: { id, jobId } };
    const event = await spawnToEnd(this.parts.sessions, request, origin).then(
      (session) => ({ kind: 'spawned', jobId, run, sessionId: session.id }) as const,
      // A job that did not start because of shutdown is started at the next start.
      (error: unknown) => (this.#tasks.isClosed ? null : this.#notSpawned({ jobId, run }, error)),
    );
    if (event) await this.#send(id, event);
  }

  #notSpawned(which: { jobId: string; run: number }, error: unknown): PipelineEvent {
    if (!(error instanceof Refusal)) {
      this.parts.world.log.error({ err: error, job: which.jobId }, 'failed to start job');
      return { kind: 'refused', ...which, reason: 'The daemon failed to start it. See its log.' };
    }
    if (error.code === 'BUDGET_CONFIRMATION_REQUIRED') return { kind: 'held', ...which };
    return { kind: 'refused', ...which, reason: `${error.code}: ${error.detail}` };
  }

  async #checkSession(pipeline: Pipeline, job: Job, sessionId: string): Promise<void> {
    const { id } = pipeline;
    const which = { jobId: job.id, sessionId };
    const session = await this.parts.sessions.find(sessionId);
    if (!session) {
      const output = 'Its session was deleted.';
      await this.#send(id, { kind: 'ended', ...which, isDone: false, output });
      return;
    }
    const phase = phaseOf(session);
    if (phase === 'works') await this.#send(id, { kind: 'works', ...which });
    else if (phase === 'waits' || (phase === 'limited' && session.pid !== null)) {
      await this.#send(id, { kind: 'waits', ...which });
    } else {
      const output = await this.#outputOf(session, pipeline.jobs.length);
      await this.#send(id, { kind: 'ended', ...which, isDone: phase === 'done', output });
      // Stop the idle agent, which would wait for input forever.
      if (session.status === 'idle') await stopSession(this.parts.sessions, sessionId);
    }
  }

  async #outputOf({ id, last_error }: Session, jobCount: number): Promise<string> {
    const most = Math.min(maxJobOutputBytes, Math.floor(maxTotalOutputBytes / jobCount));
    return (await answerOf(this.parts.sessions, id, most)) || tailOf(last_error ?? '', most);
  }

  /** Resumes after a restart of the daemon. */
  async #resume(): Promise<void> {
    const { sessions } = this.parts;
    this.#stopListening = sessions.onChange(({ before, after }) => {
      const { pipeline_id: id } = (after ?? before)!;
      if (id !== null && !isSamePhase(before, after)) this.#wake(id);
    });
    const alive = (await sessions.list()).filter((session) => !isEnded(session));
    for (const pipeline of await this.store.list()) {
      const { id, status, jobs } = pipeline;
      if (status === 'canceled') {
        // Sessions that were being spawned when their pipeline was canceled.
        for (const { id: session } of alive.filter(({ pipeline_id }) => pipeline_id === id)) {
          this.#tasks.run({ session }, () => stopSession(this.parts.sessions, session));
        }
      } else if (status === 'running' || jobs.some(isAtWork)) {
        this.#tasks.run({ pipeline: id }, () => this.#launch(pipeline));
      }
    }
  }
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
