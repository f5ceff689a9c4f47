import type { Timer } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import type { World } from '@millrace/kit/world';
import { isSamePhase } from '../core/session-phase.js';
import { Errands } from '../pipelines/errands.js';
import type { Session, Sessions } from '../sessions/port.js';
import { pauseMs } from './pauses.js';
import type { QueueClient } from './queue-client.js';
import { deletedReport, reportOf, type Report } from './report.js';
import { isOver, type QueueTask, type TaskStore } from './task-store.js';

export interface OutboxParts {
  world: World;
  store: TaskStore;
  sessions: Sessions;
  client: QueueClient;
}

/* A lease outlives a restart of the daemon, and is renewed long before it ends. */
const extendMs = 15 * 60_000;
const renewMs = 5 * 60_000;
/** When the queue says nothing of the lease that it just extended, or gave a very short one. */
const soonMs = 1_000;
/** A queue that has not listened for so long has given the task to somebody else. */
const giveUpMs = 24 * 3_600_000;
const outputLines = 200;

/**
 * Keeps the leases of the tasks that sessions work on, and tells the queue when one is over. What
 * it is to be told is on disk first, and is told until it listens, over restarts of both sides.
 */
export class Outbox {
  readonly #parts: OutboxParts;
  readonly #errands: Errands;
  readonly #stop = new AbortController();
  readonly #timers = new Map<string, Timer>();
  /** Tasks under way, by their sessions. */
  readonly #bySession = new Map<string, string>();
  /** When to extend each lease next. */
  readonly #renewAt = new Map<string, number>();
  readonly #stopListening: () => void;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
    this.#errands = new Errands((error, about) => {
      parts.world.log.error({ err: error, ...about }, 'queue task stuck');
    });
    this.#stopListening = parts.sessions.onChange(({ before, after }) => {
      const key = this.#bySession.get((after ?? before)?.id ?? '');
      if (key !== undefined && !isSamePhase(before, after)) this.#wake(key);
    });
  }

  /** Sees to a task from now on, until it is over. */
  follow({ key, session_id }: QueueTask): void {
    if (session_id !== null) this.#bySession.set(session_id, key);
    this.#renewAt.delete(key);
    this.#wake(key);
  }

  /** What is not told yet is told by whoever opens the store next. */
  async close(): Promise<void> {
    this.#stopListening();
    this.#stop.abort();
    for (const timer of this.#timers.values()) timer.cancel();
    await this.#errands.close();
  }

  /** Ends a session that nobody waits for any more. */
  async stopSession(id: string): Promise<void> {
    try {
      await this.#parts.sessions.stop(id);
    } catch (error) {
      // Whoever deleted it has stopped it.
      if (!(error instanceof Refusal && error.code === 'SESSION_NOT_FOUND')) throw error;
    }
  }

  /** Looks at a task when its turn comes. */
  #wake(key: string): void {
    this.#timers.get(key)?.cancel();
    this.#timers.delete(key);
    this.#errands.runLatest(key, { task: key }, () => this.#advance(key));
  }

  #wakeIn(key: string, delayMs: number): void {
    if (this.#errands.isClosed) return;
    this.#timers.get(key)?.cancel();
    const timer = this.#parts.world.clock.after(delayMs, () => this.#wake(key));
    this.#timers.set(key, timer);
  }

  async #advance(key: string): Promise<void> {
    const task = await this.#parts.store.find(key);
    if (!task || isOver(task) || task.session_id === null) return;
    const told = task.report ? task : await this.#withReport(task, task.session_id);
    if (told.report) await this.#tell(told, told.report);
    else await this.#extend(told);
  }

  /** Notes down what the queue is to be told, once there is something to tell. */
  async #withReport(task: QueueTask, sessionId: string): Promise<QueueTask> {
    const { store, sessions, world } = this.#parts;
    const session = await sessions.find(sessionId);
    const now = world.clock.now();
    const report = session ? await this.#reportOn(session, now) : deletedReport;
    if (!report) return task;
    const told = await store.change(task.key, (before) => ({
      ...before,
      state: 'reporting',
      report,
      reported_at: now,
      tries: 0,
    }));
    return told ?? task;
  }

  async #reportOn(session: Session, now: number): Promise<Report | undefined> {
    if (!reportOf(session, '', now)) return undefined;
    const { lines } = await this.#parts.sessions.output(session.id, { limit: outputLines });
    return reportOf(session, lines.join('\n'), now);
  }

  async #tell(task: QueueTask, report: Report): Promise<void> {
    const { client, world } = this.#parts;
    const claim = { taskId: task.task_id, leaseToken: task.lease_token };
    const answer = await client.settle(claim, report, this.#stop.signal);
    if (this.#errands.isClosed) return;
    switch (answer.kind) {
      case 'ok':
        return this.#end(task, 'settled');
      case 'lost':
        return this.#lost(task, answer.why);
      case 'refused':
        return this.#giveUp(task, answer.why);
      case 'later':
        if (world.clock.now() - task.reported_at > giveUpMs) return this.#giveUp(task, answer.why);
        return this.#again(task, answer);
    }
  }

  async #extend(task: QueueTask): Promise<void> {
    const { client, store, world } = this.#parts;
    const { key } = task;
    const waitMs = (this.#renewAt.get(key) ?? 0) - world.clock.now();
    if (waitMs > 0) return this.#wakeIn(key, waitMs);
    const claim = { taskId: task.task_id, leaseToken: task.lease_token };
    const answer = await client.extend(claim, extendMs, this.#stop.signal);
    if (this.#errands.isClosed) return;
    if (answer.kind === 'lost') return this.#lost(task, answer.why);
    if (answer.kind !== 'ok') return this.#again(task, { afterMs: 0, ...answer });
    const now = world.clock.now();
    const leftMs = answer.leaseEndsAt === null ? 0 : answer.leaseEndsAt - now;
    const renewInMs = Math.min(renewMs, Math.max(soonMs, leftMs / 2));
    this.#renewAt.set(key, now + renewInMs);
    if (task.tries > 0) await store.change(key, (before) => ({ ...before, tries: 0 }));
    this.#wakeIn(key, renewInMs);
  }

  async #again(
    { key, task_id, tries }: QueueTask,
    { why, afterMs }: { why: string; afterMs: number },
  ): Promise<void> {
    const { store, world } = this.#parts;
    const waitMs = Math.max(afterMs, pauseMs(tries, world.random));
    const fields = { task: task_id, tries: tries + 1, wait_ms: Math.round(waitMs) };
    // When it begins, and then more and more rarely: a queue that is away for long is no news.
    const level = (tries & (tries - 1)) === 0 ? 'warn' : 'debug';
    world.log[level](fields, `the queue could not be told of a task: ${why}`);
    await store.change(key, (before) => ({ ...before, tries: before.tries + 1 }));
    this.#wakeIn(key, waitMs);
  }

  async #lost(task: QueueTask, why: string): Promise<void> {
    this.#parts.world.log.warn(
      { task: task.task_id, session: task.session_id, reason: why },
      'queue task lost, stopping its session',
    );
    await this.#end(task, 'lost');
  }

  async #giveUp(task: QueueTask, why: string): Promise<void> {
    this.#parts.world.log.error(
      { task: task.task_id, session: task.session_id, reason: why },
      'failed to report the result of a queue task',
    );
    await this.#end(task, 'given_up');
  }

  /** Nobody waits for the session any more: one that is idle or at a limit would wait for ever. */
  async #end(
    { key, session_id, lease_token }: QueueTask,
    state: QueueTask['state'],
  ): Promise<void> {
    const ended = await this.#parts.store.change(key, (now) =>
      // A delivery with a new lease may have come in the meantime.
      now.lease_token === lease_token ? { ...now, state } : now,
    );
    if (ended && !isOver(ended)) return this.#wakeIn(key, 0);
    this.#renewAt.delete(key);
    if (session_id === null) return;
    this.#bySession.delete(session_id);
    await this.stopSession(session_id);
  }
}
