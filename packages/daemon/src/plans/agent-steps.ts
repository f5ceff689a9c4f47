import type { Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import {
  PermanentError,
  RetryLater,
  type Step,
  type StepContext,
  type TaskTypes,
} from '@millrace/worker';
import { localId } from '../core/backend.js';
import { isEnded, phaseOf } from '../core/session.js';
import { untilFound } from '../core/turns.js';
import { answerOf, tailOf } from '../sessions/answer.js';
import type { Backends } from '../registry/backends.js';
import type { Session, Sessions, SpawnOrigin, SpawnRequest } from '../sessions/port.js';
import { maxAgentText } from './prompts.js';
import type { PlanStore } from './store.js';

export interface AgentStepsParts {
  store: PlanStore;
  sessions: Sessions;
  backends: Pick<Backends, 'read'>;
  clock: Clock;
  log: Log;
}

/** The task that steps belong to. */
export interface TaskPlace {
  plan: string;
  key: string;
  /** The agent that made the plan, whose children its sessions are. */
  agent: string | null;
}

/** Without a backend, a free one is chosen. */
export type AgentRequest = Omit<SpawnRequest, 'backend'> & { backend: string | undefined };

/** The end of a session's turn. */
export interface AgentEnd {
  sessionId: string;
  phase: 'done' | 'failed' | 'orphaned' | 'limited';
  output: string;
  /** Why it did not end well. */
  reason: string;
  /** When a limit ends. */
  limitedUntil: number | null;
}

/** A task cannot be done; the message is what its caller sees. */
export class TaskFailure extends PermanentError {
  override readonly name = 'TaskFailure';
}

const maxRevivals = 3;
const maxLimits = 5;
const defaultLimitMs = 900_000;
const maxNameLength = 128;
/** A gate is tried again after this long, with the task suspended in between. */
const gateMs = 15_000;

/** Runs sessions as steps of a task: each is started once, however often the daemon is killed. */
export class AgentSteps {
  constructor(
    private readonly parts: AgentStepsParts,
    private readonly place: TaskPlace,
    private readonly step: Step<TaskTypes>,
  ) {}

  /** A step that is tried once. Refusals become failures of the task with their message. */
  run<Result>(name: string, fn: (context: StepContext) => Promise<Result>): Promise<Result> {
    return this.step.run(name, (context) => this.#guarded(context, fn), {
      attempts: 1_000,
      backoff: { kind: 'fixed', ms: gateMs },
    });
  }

  async #guarded<Result>(
    context: StepContext,
    fn: (context: StepContext) => Promise<Result>,
  ): Promise<Result> {
    try {
      return await fn(context);
    } catch (error) {
      if (context.signal.aborted || error instanceof RetryLater) throw error;
      if (error instanceof PermanentError) throw error;
      if (error instanceof Refusal) throw new TaskFailure(error.detail, { cause: error });
      const { plan, key } = this.place;
      this.parts.log.error({ err: error, plan, task: key }, 'plan task failed');
      throw new TaskFailure('The daemon failed on it. See its log.', { cause: error });
    }
  }

  /** Starts a session and waits until its turn is over. Throws unless it ended well. */
  async agent(name: string, request: AgentRequest): Promise<AgentEnd> {
    return this.ended(name, await this.start(name, request));
  }

  /** Returns the id of the session. */
  async start(name: string, { backend, ...request }: AgentRequest): Promise<string> {
    const chosen = await this.run(`${name}:backend`, () => this.#freeBackend(backend));
    return this.run(`${name}:start`, () => this.#spawn(name, { ...request, backend: chosen }));
  }

  /** Gives the session of an ended turn a text to work on, and waits again. */
  async again(name: string, id: string, text: string): Promise<AgentEnd> {
    await this.#wake(name, id, text);
    return this.ended(name, id, text);
  }

  /** Waits for the end. A session that was lost with the daemon or met a limit goes on. */
  async ended(name: string, id: string, text?: string): Promise<AgentEnd> {
    let [revivals, limits] = [0, 0];
    for (let n = 1; ; n++) {
      const end = await this.run(`${name}:end-${n}`, ({ signal }) => this.#turnEnd(id, signal));
      if (end.phase === 'done') return end;
      if (end.phase === 'orphaned' && revivals++ < maxRevivals) {
        await this.#wake(`${name}:revive-${n}`, id, text);
      } else if (end.phase === 'limited' && limits++ < maxLimits) {
        const until = end.limitedUntil ?? (await this.step.now()) + defaultLimitMs;
        const ms = Math.max(1_000, until - (await this.step.now()));
        await this.step.sleep(`${name}:limit-${n}`, ms);
        await this.#wake(`${name}:revive-${n}`, id, text);
      } else throw new TaskFailure(end.reason);
    }
  }

  /** Restarted once: a restart counts in the session, which shows that it has happened. */
  async #wake(name: string, id: string, text: string | undefined): Promise<void> {
    const { sessions } = this.parts;
    const count = async () => (await this.session(id)).restart_count;
    const before = await this.run(`${name}:before`, count);
    await this.run(`${name}:wake`, async () => {
      if ((await count()) === before) await sessions.restart(id, text);
      return null;
    });
  }

  async session(id: string): Promise<Session> {
    const session = await this.parts.sessions.find(id);
    if (session) return session;
    throw new TaskFailure(`Its session ${id} was deleted.`);
  }

  /** The named backend, or the free one with the fewest running agents, the default first. */
  async #freeBackend(named: string | undefined): Promise<string> {
    if (named !== undefined) return named;
    const { backends, sessions, clock } = this.parts;
    const now = clock.now();
    const rows = (await backends.read()).backends.filter(
      ({ id, installed, enabled }) => installed && enabled && id !== localId,
    );
    if (rows.length === 0) {
      throw new TaskFailure('No backend can run agents: install one and run `ctl backend rescan`.');
    }
    const running = (await sessions.list()).filter((session) => !isEnded(session));
    const load = (id: string) => running.filter(({ backend }) => backend === id).length;
    const isLimited = (until: number) => (until > now ? 1 : 0);
    const [best] = rows.toSorted(
      (a, b) =>
        isLimited(a.limited_until) - isLimited(b.limited_until) ||
        load(a.id) - load(b.id) ||
        Number(b.default) - Number(a.default) ||
        (a.id < b.id ? -1 : 1),
    );
    return best!.id;
  }

  async #spawn(name: string, request: SpawnRequest): Promise<string> {
    const { plan, key, agent } = this.place;
    const { store } = this.parts;
    const { status } = await store.get(plan);
    if (status === 'canceled') throw new TaskFailure('The plan is canceled.');
    const given: SpawnRequest = {
      ...(request.repo === undefined && agent !== null && (await this.#placeOf(agent))),
      ...request,
      name: (request.name ?? key).slice(0, maxNameLength).toWellFormed(),
      ...(agent !== null && { parent_id: agent }),
    };
    const origin = {
      idempotencyKey: `plan:${plan}:${key}:${name}`,
      plan: { id: plan, key },
      ...(agent !== null && { agent }),
    };
    const { id } = await this.#started(given, origin);
    const after = await store.changeTask(plan, key, ({ sessions, waiting_for: what }) => ({
      sessions: sessions.includes(id) ? sessions : [...sessions, id],
      ...(what === 'budget' && { status: 'running', waiting_for: null }),
    }));
    // The plan was canceled while its session started.
    if (after.status === 'canceled') await this.parts.sessions.stop(id);
    return id;
  }

  /** Without a repository, the agents of an agent work where it works. */
  async #placeOf(agent: string): Promise<Pick<SpawnRequest, 'cwd'>> {
    const parent = await this.parts.sessions.find(agent);
    return parent ? { cwd: parent.workdir } : {};
  }

  /** Caps on spend and on running children are waited for. */
  async #started(request: SpawnRequest, origin: SpawnOrigin): Promise<Session> {
    try {
      return await spawnToEnd(this.parts.sessions, request, origin);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { code, detail } = error;
      const isGate = code === 'BUDGET_CONFIRMATION_REQUIRED' || /running children/.test(detail);
      if (!isGate) throw error;
      const { plan, key } = this.place;
      const waiting = { status: 'waiting', waiting_for: 'budget' } as const;
      await this.parts.store.changeTask(plan, key, () => waiting);
      throw new RetryLater({ afterMs: gateMs, message: detail, cause: error });
    }
  }

  /** Resolves when the session does not work any more; a question to a person is shown. */
  #turnEnd(id: string, signal: AbortSignal): Promise<AgentEnd> {
    const { sessions } = this.parts;
    const onChange = (wake: () => void) =>
      sessions.onChange(({ before, after }) => {
        if ((after ?? before)?.id === id) wake();
      });
    return untilFound({ onChange, signal }, async () => {
      const session = await this.session(id);
      const end = await this.#endOf(session);
      if (!end) await this.#showWaiting(session);
      return end;
    });
  }

  async #endOf(session: Session): Promise<AgentEnd | undefined> {
    const { id, status, pid, last_error: error, status_reason: why, limited_until } = session;
    const phase = phaseOf(session);
    const isLimited = phase === 'limited' && pid === null;
    if (phase === 'works' || phase === 'waits' || (phase === 'limited' && !isLimited)) return;
    const output = await answerOf(this.parts.sessions, id, maxAgentText);
    // An interactive agent would wait for input forever.
    if (status === 'idle') await this.parts.sessions.stop(id);
    const found =
      status === 'orphaned'
        ? 'orphaned'
        : isLimited
          ? 'limited'
          : phase === 'done'
            ? 'done'
            : 'failed';
    const isStopped = phase === 'stopped';
    const detail = isStopped ? '' : (error ?? why ?? '');
    const reason = [
      `The agent ${session.name} ${isStopped ? 'was stopped' : `ended ${status}`}.`,
      // Most programs print their error, too.
      output.includes(detail) ? '' : detail,
      output,
    ];
    return {
      sessionId: id,
      phase: found,
      output,
      reason: tailOf(reason.filter((part) => part !== '').join('\n'), maxAgentText),
      limitedUntil: limited_until === null ? null : Date.parse(limited_until),
    };
  }

  async #showWaiting(session: Session): Promise<void> {
    const { plan, key } = this.place;
    const isWaiting = phaseOf(session) === 'waits';
    await this.parts.store.changeTask(plan, key, (task) => {
      if (isWaiting) return { status: 'waiting', waiting_for: 'answer' };
      return task.waiting_for === 'answer' ? { status: 'running', waiting_for: null } : {};
    });
  }
}

/**
 * Starts a session that is to end by itself: headless, and in a terminal if its program takes a
 * prompt of that length only there.
 */
export async function spawnToEnd(
  sessions: Pick<Sessions, 'spawn'>,
  request: SpawnRequest,
  origin: SpawnOrigin,
): Promise<Session> {
  try {
    return (await sessions.spawn({ ...request, driver: 'headless' }, origin)).session;
  } catch (error) {
    const isAboutPrompt =
      error instanceof Refusal && error.extra.errors?.some(({ pointer }) => pointer === '/prompt');
    if (!isAboutPrompt) throw error;
    const inTerminal = { ...request, driver: 'tmux' } as const;
    const started = await sessions.spawn(inTerminal, origin).catch(() => undefined);
    if (!started) throw error;
    return started.session;
  }
}
