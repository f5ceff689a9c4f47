import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Database } from '@millrace/engine';
import { formatTimestamp } from '@millrace/kit/units';
import type { World } from '@millrace/kit/world';
import {
  ApiError,
  LeaseLost,
  PermanentError,
  RetryLater,
  type HandlerCall,
} from '@millrace/worker';
import { descendantsOf } from '../core/agent-tree.js';
import { beyondRights, fail, invalid, type Caller } from '../core/api.js';
import { isEnded, sessionsMeant } from '../core/session.js';
import { Turns } from '../core/turns.js';
import type { Backends } from '../registry/backends.js';
import type { Questions } from '../questions/questions.js';
import { tailOf } from '../sessions/answer.js';
import { deleteBranch } from './branch-work.js';
import {
  checkAgentPlan,
  checkPlan,
  newPlan,
  type PlanDefinition,
  type StoredPlan,
  type StoredTask,
} from './definition.js';
import type { AgentFlows } from './engine.js';
import { maxAgentText, taskPrompt } from './prompts.js';
import type { RunTaskParts } from './run-task.js';
import { isTaskEnded, PlanStore, taskOf } from './store.js';

export interface PlansParts extends Omit<RunTaskParts, 'store' | 'discardLater' | 'mergeTurns'> {
  world: World;
  database: Database;
  flows: AgentFlows;
  backends: Backends;
  questions: Questions;
}

type Who = Pick<Caller, 'name' | 'self' | 'agent'>;

/** Branches that lost a race are deleted by the engine, so it runs while there are some. */
const discardDays = 8;
/** Losers of a race stay this long. */
const discardAfterMs = 7 * 86_400_000;

/** Plans: tasks that agents and people do, in order of their dependencies. */
export class Plans {
  readonly #store: PlanStore;
  readonly #runParts: RunTaskParts;
  #isClosed = false;

  constructor(private readonly parts: PlansParts) {
    const { flows } = parts;
    this.#store = new PlanStore(parts.database);
    this.#runParts = {
      ...parts,
      store: this.#store,
      mergeTurns: new Turns(),
      discardLater: async (branches, name) => {
        const options = { delayMs: discardAfterMs, uniqueKey: `discard:${name}` };
        await (await flows.queue()).submit('plan.discard', { branches: [...branches] }, options);
      },
    };
    flows.handle({
      'plan.task': (call) => this.#run(call),
      'plan.discard': async ({ payload: { branches } }) => {
        for (const branch of branches) await deleteBranch(parts.git, branch);
      },
    });
  }

  /** One attempt of a task. A failure for good is shown in the plan. */
  async #run({ payload, step, signal }: HandlerCall<{ plan: string; key: string }>) {
    const { plan: id, key } = payload;
    const store = this.#store;
    const plan = await store.find(id);
    if (plan?.status !== 'running') return;
    const { TaskRun } = await import('./run-task.js');
    const definition = await store.definition(id);
    const run = new TaskRun(this.#runParts, { step, signal }, plan, definition, key);
    await run.run().catch(async (error: unknown) => {
      const isPassing = error instanceof LeaseLost || error instanceof RetryLater;
      if (signal.aborted || isPassing || !(error instanceof PermanentError)) throw error;
      const result = error.message;
      await store.changeTask(id, key, () => ({ status: 'failed', result, waiting_for: null }));
      throw error;
    });
  }

  /** Goes on with stored plans, in the background; the sessions must be adopted before. */
  async resume(): Promise<void> {
    const { world } = this.parts;
    const oldest = world.clock.now() - discardDays * 86_400_000;
    const plans = await this.#store.list();
    const isNeeded = plans.some(
      ({ status, tasks, updated_at: at }) =>
        status === 'running' ||
        (Date.parse(at) > oldest && tasks.some(({ race }) => race.length > 0)),
    );
    if (!isNeeded) return;
    void this.#goOnWith(plans).catch((error: unknown) => {
      if (!this.#isClosed) world.log.error({ err: error }, 'failed to resume plans');
    });
  }

  close(): void {
    this.#isClosed = true;
  }

  async #goOnWith(plans: readonly StoredPlan[]): Promise<void> {
    await this.parts.flows.queue();
    for (const plan of plans) await this.#goOn(plan);
  }

  /** Repeating it changes nothing. */
  async #submit({ id, tasks }: StoredPlan): Promise<void> {
    const ids = await this.#store.taskIds(id);
    const flow = (await this.parts.flows.queue()).flow(id);
    for (const { key, depends_on: after } of tasks) {
      flow.task(key, 'plan.task', { plan: id, key }, { id: ids[key]!, after });
    }
    await flow.submit();
  }

  /** A signal to a task that has ended is ignored. */
  async #signal(id: string, key: string, name: string, payload: object): Promise<void> {
    const queue = await this.parts.flows.queue();
    try {
      await queue.signal((await this.#store.taskIds(id))[key]!, name, payload, { id: name });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'TASK_ENDED')) throw error;
    }
  }

  /** What a crash may have left undone; all of it can be repeated. */
  async #goOn(plan: StoredPlan): Promise<void> {
    if (plan.status === 'canceled') return this.#stopSessions(plan);
    if (plan.status !== 'running') return;
    await this.#submit(plan);
    for (const task of plan.tasks) {
      const picked = task.race.find((entry) => entry.picked)?.session_id;
      if (picked) await this.#signal(plan.id, task.key, 'pick', { session_id: picked });
      const isOver = task.assignee === 'person' && isTaskEnded(task);
      if (isOver) await this.#signalEnd(plan.id, task);
    }
  }

  async #signalEnd(id: string, { key, status, result }: StoredTask) {
    const failed = status === 'failed';
    await this.#signal(id, key, 'complete', { failed, result: result ?? '' });
  }

  /** Newest first. An agent sees what it and its agents have made. */
  async list(who: Who): Promise<StoredPlan[]> {
    const plans = await this.#store.list();
    if (who.agent === undefined) return plans;
    const ours = await this.#family(who.agent);
    return plans.filter(({ created_by: by }) => by !== null && ours.has(by));
  }

  async get(who: Who, id: string): Promise<StoredPlan> {
    const plan = await this.#store.get(id);
    await this.#checkOwner(who, plan);
    return plan;
  }

  async #family(agent: string): Promise<Set<string>> {
    const below = descendantsOf(await this.parts.sessions.list(), agent);
    return new Set([agent, ...below.map(({ id }) => id)]);
  }

  async #checkOwner({ agent }: Who, { created_by: by }: StoredPlan): Promise<void> {
    if (agent === undefined) return;
    if (by === null || !(await this.#family(agent)).has(by)) throw beyondRights();
  }

  async create({ self, agent }: Who, definition: PlanDefinition): Promise<StoredPlan> {
    if (agent !== undefined) checkAgentPlan(definition);
    await checkPlan(this.parts, definition);
    const { clock, random } = this.parts.world;
    const now = clock.now();
    const id = random.ulid(now);
    const plan = newPlan(definition, { id, now: formatTimestamp(now), agent: self });
    await this.parts.flows.queue();
    const taskIds = plan.tasks.map(({ key }) => [key, random.ulid(now)]);
    await this.#store.insert(plan, definition, Object.fromEntries(taskIds));
    await this.#submit(plan);
    return this.#store.get(id);
  }

  async cancel(who: Who, id: string): Promise<StoredPlan> {
    await this.get(who, id);
    const after = await this.#store.change(id, (plan) => {
      if (plan.status === 'canceled') return plan;
      if (plan.status !== 'running') {
        throw planState(`The plan is ${plan.status}: there is nothing to cancel.`);
      }
      const tasks = plan.tasks.map((task): StoredTask => {
        return isTaskEnded(task) ? task : { ...task, status: 'canceled', waiting_for: null };
      });
      return { ...plan, status: 'canceled', tasks };
    });
    const reason = 'The plan is canceled';
    const taskIds = Object.values(await this.#store.taskIds(id));
    await (await this.parts.flows.queue()).cancel(taskIds, { reason });
    await this.#stopSessions(after);
    return after;
  }

  /** Also a session that was started when the daemon ended. */
  async #stopSessions({ id }: StoredPlan): Promise<void> {
    const { sessions, questions } = this.parts;
    for (const session of await sessions.list()) {
      if (session.plan_id !== id) continue;
      if (!isEnded(session)) await sessions.stop(session.id);
      for (const { question } of questions.openOf(session.id)) await questions.close(question.id);
    }
  }

  async pick(who: Who, id: string, key: string, words: string): Promise<StoredPlan> {
    await this.get(who, id);
    const sessions = await this.parts.sessions.list();
    const after = await this.#changeTask(id, key, (task) => {
      const { race, status, waiting_for: what } = task;
      const racing = sessions.filter((each) => race.some(({ session_id: own }) => own === each.id));
      const [meant, ...others] = sessionsMeant(racing, words);
      const sessionId = others.length === 0 ? meant?.id : undefined;
      const entry = race.find((each) => each.session_id === (sessionId ?? words));
      if (what !== 'pick') {
        const why = race.length === 0 ? 'has no race' : `is ${status} and waits for no pick`;
        throw planState(`The task ${key} ${why}.`);
      }
      const able = race.filter((each) => each.status === 'done').map((each) => each.session_id);
      if (entry?.status !== 'done') {
        throw invalid('session_id', `must be one of the race that ended well: ${able.join(', ')}`);
      }
      const entries = race.map((each) => ({ ...each, picked: each === entry }));
      return { status: 'running', waiting_for: null, race: entries };
    });
    const picked = taskOf(after, key).race.find((entry) => entry.picked);
    await this.#signal(id, key, 'pick', { session_id: picked!.session_id });
    return after;
  }

  /** Tasks that can be claimed, oldest first. */
  async ready(who: Who): Promise<DaemonSchema<'ReadyTask'>[]> {
    const plans = (await this.list(who)).toReversed();
    return (await Promise.all(plans.map((plan) => this.#readyIn(plan)))).flat();
  }

  async #readyIn(plan: StoredPlan): Promise<DaemonSchema<'ReadyTask'>[]> {
    const ready = plan.tasks.filter(
      ({ status, claimed_by: by }) => status === 'ready' && by === null,
    );
    if (ready.length === 0) return [];
    const { tasks } = await this.#store.definition(plan.id);
    return ready.map((task) => ({
      plan_id: plan.id,
      plan_title: plan.title,
      key: task.key,
      title: task.title,
      prompt: taskPrompt(plan, task),
      assignee: task.assignee,
      repo: tasks.find(({ key }) => key === task.key)?.repo ?? plan.repo,
      depends_on: task.depends_on,
    }));
  }

  async claim(who: Who, id: string, key: string, name: string | undefined): Promise<StoredPlan> {
    await this.get(who, id);
    const by = claimant(who, name);
    return this.#changeTask(id, key, ({ status, claimed_by: holder }) => {
      if (holder === by) return {};
      if (holder !== null) throw planState(`The task ${key} was claimed by ${holder}.`);
      if (status !== 'ready')
        throw planState(`The task ${key} is ${status}, so it cannot be claimed.`);
      return { claimed_by: by, status: 'waiting', waiting_for: 'completion' };
    });
  }

  async complete(
    who: Who,
    id: string,
    key: string,
    request: DaemonSchema<'CompleteTaskRequest'>,
  ): Promise<StoredPlan> {
    const { result = '', branch = null, failed = false } = request;
    await this.get(who, id);
    const by = claimant(who, request.by);
    const after = await this.#changeTask(id, key, ({ status, assignee, claimed_by: holder }) => {
      if (assignee !== 'person') {
        throw planState(`The task ${key} is done by an agent of the daemon.`);
      }
      if (holder !== null && holder !== by)
        throw planState(`The task ${key} was claimed by ${holder}.`);
      if (status !== 'ready' && status !== 'waiting') {
        throw planState(`The task ${key} is ${status}, so it cannot be completed.`);
      }
      const text = tailOf(result, maxAgentText);
      return {
        claimed_by: by,
        waiting_for: null,
        status: failed ? 'failed' : 'done',
        result: text === '' && failed ? 'It was completed as failed.' : text,
        branch,
      };
    });
    await this.#signalEnd(id, taskOf(after, key));
    return after;
  }

  #changeTask(id: string, key: string, change: (task: StoredTask) => Partial<StoredTask>) {
    return this.#store.changeTask(
      id,
      key,
      (task) => change(task),
      (task) => {
        throw planState(`The task ${key} is ${task.status}.`);
      },
    );
  }
}

/** An agent with its own token cannot speak for another. */
function claimant({ agent, name }: Who, given: string | undefined): string {
  return agent ?? given ?? name.replace(/ \(mcp\)$/, '');
}

function planState(detail: string): Error {
  return fail('PLAN_STATE', detail);
}
