import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import type { Check } from '@millrace/kit/http';
import type { BudgetVerdict } from '../core/budget.js';
import { fail } from '../core/api.js';
import { Turns } from '../core/turns.js';
import { stopSession } from '../sessions/answer.js';
import type { Session } from '../sessions/port.js';
import { AgentTraces } from './report.js';
import { Outbox, budgetRetryMs, type OutboxParts } from './outbox.js';
import {
  readTask,
  tagOf,
  checkSignature,
  type QueueTask,
  isOver,
  isDeferred,
  type Delivery,
  type ReceivedTask,
} from './received-task.js';

export interface QueueTasksParts extends OutboxParts {
  /** Signing key of the queue; undefined: tasks are refused. */
  key: Uint8Array | undefined;
  /** The schema of a SpawnRequest. */
  spawnCheck: () => Check;
}

/** Accepts tasks from the queue; each attempt becomes a session. */
export class QueueTasks {
  readonly #outbox: Outbox;
  readonly #traces: AgentTraces | undefined;
  /** Deliveries of one attempt are taken one after the other. */
  readonly #taking = new Turns();

  private constructor(private readonly parts: QueueTasksParts) {
    this.#outbox = new Outbox(parts);
    const { sessions, world } = parts;
    const { tracer, clock } = world;
    this.#traces = tracer && new AgentTraces({ tracer, sessions, clock });
  }

  /** Resumes tasks in progress; the sessions must be adopted before. */
  static async open(parts: QueueTasksParts): Promise<QueueTasks> {
    const tasks = new QueueTasks(parts);
    await tasks.#resume();
    return tasks;
  }

  /** Starts the session of a delivery, or finds the one that this attempt has already. */
  async receive(delivery: Delivery): Promise<DaemonSchema<'QueueTaskAccepted'>> {
    const { key, world } = this.parts;
    if (!key) {
      throw fail(
        'FEATURE_DISABLED',
        'No task is taken without queue.callback_secret: set it to the secret of the queue.',
      );
    }
    const { headers, body } = delivery;
    const signing = {
      id: headers['webhook-id'],
      timestamp: headers['webhook-timestamp'],
      signature: headers['webhook-signature'],
    };
    checkSignature(signing, body ?? new Uint8Array(), { key, now: world.clock.now() });
    return this.accept(delivery);
  }

  /** Starts the session of a task that is known to come from the queue. */
  async accept(delivery: Delivery): Promise<DaemonSchema<'QueueTaskAccepted'>> {
    const task = readTask(delivery, this.parts.spawnCheck());
    const sessionId = await this.#taking.in(task.attemptKey, () => this.#take(task));
    await this.#traces?.begin(sessionId, delivery.headers.traceparent);
    return { task_id: task.id, session_id: sessionId };
  }

  /** Tasks that are not over. */
  get openCount(): number {
    return this.#outbox.openCount;
  }

  /** Called whenever a task is over. Returns how to stop listening. */
  onEnd(listener: () => void): () => void {
    return this.#outbox.onEnd(listener);
  }

  close(): Promise<void> {
    this.#traces?.close();
    return this.#outbox.close();
  }

  async #take(task: ReceivedTask): Promise<string> {
    const { store, sessions, world } = this.parts;
    const { attemptKey: key, leaseToken } = task;
    const known = await store.find(key);
    if (known && mayGoOn(known, leaseToken) && (await sessions.find(known.session_id))) {
      await this.#renew(known, leaseToken);
      return known.session_id;
    }
    await store.put({
      key,
      task_id: task.id,
      queue: task.queue,
      lease_token: leaseToken,
      session_id: null,
      state: 'spawning',
      report: null,
      reported_at: 0,
      tries: 0,
      received_at: world.clock.now(),
    });
    const session = await this.#spawn(task).catch(async (error: unknown) => {
      await store.remove(key);
      throw error;
    });
    const working = await store.change(key, (now) => ({
      ...now,
      session_id: session.id,
      state: 'working',
    }));
    if (working) this.#outbox.follow(working);
    return session.id;
  }

  /** The same attempt with a new lease, which later reports use. */
  async #renew({ key, lease_token }: QueueTask, leaseToken: string): Promise<void> {
    if (lease_token === leaseToken) return;
    const now = this.parts.world.clock.now();
    const task = await this.parts.store.change(key, (before) => ({
      ...before,
      lease_token: leaseToken,
      state: before.report ? 'reporting' : 'working',
      reported_at: now,
      tries: 0,
    }));
    if (task) this.#outbox.follow(task);
  }

  async #spawn({ request, attemptKey, leaseToken, ...task }: ReceivedTask): Promise<Session> {
    const { sessions, world } = this.parts;
    try {
      const { id, queue, attempt } = task;
      const key = `queue:${attemptKey}:${leaseToken}`;
      const origin = { idempotencyKey: key, task: { id, queue, attempt } };
      return (await sessions.spawn(request, origin)).session;
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'BUDGET_CONFIRMATION_REQUIRED') throw error;
      const verdict = error.extra.members?.['verdict'] as BudgetVerdict | undefined;
      const reason = verdict?.reason ?? 'a spend cap is reached';
      throw fail('BUDGET_EXCEEDED', `The task stays in the queue, because ${reason}.`, {
        retryAfterMs: budgetRetryMs(verdict, world.clock.now()),
        // Waiting for budget is not an attempt, so a cap cannot exhaust the retries.
        headers: { 'X-Queue-Defer': 'true' },
        cause: error,
      });
    }
  }

  async #resume(): Promise<void> {
    for (const task of await this.parts.store.open()) {
      if (task.session_id === null) await this.#dropUnanswered(task);
      else this.#outbox.follow(task);
    }
  }

  /**
   * The daemon stopped before it responded, so the queue delivers the task again as another
   * attempt; a session that was already started is stopped.
   */
  async #dropUnanswered({ key, task_id, received_at }: QueueTask): Promise<void> {
    const { sessions, store } = this.parts;
    const ours = (await sessions.list()).filter(
      ({ tags, created_at }) =>
        tags.includes(tagOf(task_id)) && Date.parse(created_at) >= received_at,
    );
    for (const { id } of ours) await stopSession(this.parts.sessions, id);
    await store.remove(key);
  }
}

/**
 * A session stopped because of a lost lease does not continue with another one, and one that hit a
 * limit has ended: a redelivery of the same attempt starts a new session.
 */
function mayGoOn(task: QueueTask, leaseToken: string): task is QueueTask & { session_id: string } {
  if (task.session_id === null) return false;
  if (task.lease_token === leaseToken || !isOver(task)) return true;
  return task.state === 'settled' && !isDeferred(task);
}
