import type { Database } from '@millrace/db';
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
import { fail } from '../core/refusals.js';
import { isSamePhase, phaseOf } from '../core/session-phase.js';
import type { Backends } from '../registry/backends.js';
import type { Session, Sessions, SpawnOrigin, SpawnRequest } from '../sessions/port.js';
import { checkDefinition, checkRepo } from './definition.js';
import { Errands } from './errands.js';
import { tailOf } from './output.js';
import { promptOf } from './prompt.js';
import { PipelineStore } from './store.js';

export interface PipelinesParts {
  world: World;
  database: Database;
  sessions: Sessions;
  backends: Pick<Backends, 'read'>;
}

/* A record has at most 2 MiB: so much for what was asked for, and so much for all outputs. */
const mostDefinitionBytes = 1_310_720;
const mostOutputBytes = 655_360;
const longestOutputBytes = 16_384;
const outputLines = 1_000;
const longestName = 128;

/** Runs the jobs of pipelines, each as a session, in the order that they depend on one another. */
export class Pipelines {
  readonly #parts: PipelinesParts;
  readonly #store: PipelineStore;
  readonly #errands: Errands;
  #stopListening: (() => void) | undefined;

  private constructor(parts: PipelinesParts, store: PipelineStore) {
    this.#parts = parts;
    this.#store = store;
    this.#errands = new Errands((error, about) => {
      parts.world.log.error({ err: error, ...about }, 'pipeline stuck');
    });
  }

  /** Opens what is stored and goes on with it; the sessions must be adopted by then. */
  static async open(parts: PipelinesParts): Promise<Pipelines> {
    const pipelines = new Pipelines(parts, new PipelineStore(parts.database));
    await pipelines.#resume();
    return pipelines;
  }

  /** Hears of no session any more and starts nothing new. What is under way is waited for. */
  async close(): Promise<void> {
    this.#stopListening?.();
    await this.#errands.close();
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
      throw fail('BACKEND_NOT_FOUND', `/jobs/${index}: there is no backend "${backend}": ${hint}`);
    }
  }

  /** Takes a pipeline on by one event; what came of it is on disk when this resolves. */
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
        this.#errands.run(about, () => this.#spawn(state, command));
      } else this.#errands.run(about, () => this.#stop(command.sessionId));
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
      name: `${pipeline.name}: ${jobId}`.slice(0, longestName).toWellFormed(),
      // A run that ends by itself is what a job is; an interactive agent would wait for more.
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
      // What did not start because we stop is started by whoever opens the store next.
      if (this.#errands.isClosed) return;
      await this.#send(id, this.#notSpawned({ jobId, run }, error));
      return;
    }
    await this.#send(id, { kind: 'spawned', jobId, run, sessionId: session.id });
    this.#follow(session);
  }

  /** Headless where that is possible: some programs take a long prompt in a conversation only. */
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
      return { kind: 'refused', ...which, reason: 'The daemon could not start it: see its log.' };
    }
    if (error.code === 'BUDGET_CONFIRMATION_REQUIRED') return { kind: 'held', ...which };
    return { kind: 'refused', ...which, reason: `${error.code}: ${error.detail}` };
  }

  async #stop(sessionId: string): Promise<void> {
    try {
      await this.#parts.sessions.stop(sessionId);
    } catch (error) {
      // Whoever deleted it has stopped it.
      if (!(error instanceof Refusal && error.code === 'SESSION_NOT_FOUND')) throw error;
    }
  }

  /** Looks at a session when its turn comes, which may tell of several changes at once. */
  #follow({ id, pipeline_id, job_id }: Pick<Session, 'id' | 'pipeline_id' | 'job_id'>): void {
    if (pipeline_id === null || job_id === null) return;
    const about = { pipeline: pipeline_id, job: job_id, session: id };
    this.#errands.runLatest(id, about, () => this.#look(pipeline_id, job_id, id));
  }

  async #look(pipelineId: string, jobId: string, sessionId: string): Promise<void> {
    const which = { jobId, sessionId };
    const session = await this.#parts.sessions.find(sessionId);
    if (!session) {
      const output = 'Its session was deleted.';
      await this.#tell(pipelineId, { kind: 'ended', ...which, isDone: false, output });
      return;
    }
    const phase = phaseOf(session);
    if (phase === 'works') await this.#tell(pipelineId, { kind: 'works', ...which });
    else if (phase === 'waits' || (phase === 'limited' && session.pid !== null)) {
      await this.#tell(pipelineId, { kind: 'waits', ...which });
    } else {
      const output = await this.#outputOf(session, pipelineId);
      const isDone = phase === 'done';
      const wasOurs = await this.#isAtWork(pipelineId, sessionId);
      await this.#tell(pipelineId, { kind: 'ended', ...which, isDone, output });
      // It would wait for ever for somebody to talk to it. Who does so later is left alone.
      if (wasOurs && session.status === 'idle') await this.#stop(sessionId);
    }
  }

  async #isAtWork(pipelineId: string, sessionId: string): Promise<boolean> {
    const { jobs = [] } = (await this.#store.find(pipelineId))?.pipeline ?? {};
    const job = jobs.find(({ session_id }) => session_id === sessionId);
    return job?.status === 'running' || job?.status === 'needs_attention';
  }

  /** A pipeline that is no longer kept has no interest in its sessions. */
  async #tell(id: string, event: PipelineEvent): Promise<void> {
    if (await this.#store.find(id)) await this.#send(id, event);
  }

  async #outputOf({ id, last_error }: Session, pipelineId: string): Promise<string> {
    const { lines } = await this.#parts.sessions.output(id, { limit: outputLines });
    const jobs = (await this.#store.find(pipelineId))?.pipeline.jobs.length ?? 1;
    const most = Math.min(longestOutputBytes, Math.floor(mostOutputBytes / jobs));
    return tailOf(lines.join('\n'), most) || tailOf(last_error ?? '', most);
  }

  /** Goes on where the daemon was when it ended. */
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

  /** A session that was on its way when its pipeline was canceled and the daemon ended. */
  #stopLeftovers(sessions: readonly Session[]): void {
    for (const { id, status } of sessions) {
      if (status === 'done' || status === 'errored' || status === 'orphaned') continue;
      this.#errands.run({ session: id }, () => this.#stop(id));
    }
  }

  async #goOn(id: string): Promise<void> {
    const state = (await this.#store.find(id))!;
    for (const job of state.pipeline.jobs) {
      if (job.status !== 'running' && job.status !== 'needs_attention') continue;
      if (job.session_id === null) {
        // The same key: if its session was started after all, it is handed that one.
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
  if (bytes <= mostDefinitionBytes) return;
  throw fail(
    'PAYLOAD_TOO_LARGE',
    `The pipeline has ${bytes} bytes and ${mostDefinitionBytes} are the most: ` +
      'shorten the prompts or make two pipelines of it.',
  );
}

function notFound(id: string): Error {
  return fail(
    'PIPELINE_NOT_FOUND',
    `There is no pipeline "${id}": GET /api/v1/pipelines lists them.`,
  );
}
