import { backoffMs } from '@millrace/kit/backoff';
import type { Timer } from '@millrace/kit/clock';
import type { World } from '@millrace/kit/world';
import { isSamePhase } from '../core/session.js';
import { BackgroundTasks } from '../core/turns.js';
import { stopSession } from '../sessions/answer.js';
import type { Session, Sessions } from '../sessions/port.js';
import type { QueueClient } from './queue-client.js';
import { deletedReport, reportOf, type Report } from './report.js';
import { isOver, type QueueTask, type TaskStore } from './received-task.js';
import type { BudgetVerdict } from '../core/budget.js';

export interface OutboxParts {
  world: World;
  store: TaskStore;
  sessions: Sessions;
  client: QueueClient;
  /** Length of the leases; default: 15 minutes. */
  leaseMs?: number | undefined;
  /** Cost of a session so far; null when it is unknown. */
  exactUsdOf?: ((session: Session) => Promise<number | null>) | undefined;
  /** Reported with each extension of a lease. */
  progressOf?: ((session: Session) => string) | undefined;
}

/** A lease outlives a restart of the daemon. */
const defaultLeaseMs = 15 * 60_000;
/** Minimum renewal interval, for very short leases or a response without an expiry. */
const soonMs = 1_000;
/** After this long without success, the queue has reassigned the task. */
const giveUpMs = 24 * 3_600_000;
const outputLines = 200;

/**
 * Extends the leases of tasks in progress, and reports results to the queue. A report is stored
 * first and retried until the queue accepts it, across restarts of both sides.
 */
export class Outbox {
  readonly #tasks: BackgroundTasks;
  readonly #stop = new AbortController();
  readonly #timers = new Map<string, Timer>();
  /** Tasks in progress, by session. */
  readonly #bySession = new Map<string, string>();
  /** When to extend each lease next. */
  readonly #renewAt = new Map<string, number>();
  readonly #stopListening: () => void;
  /** Tasks that are not over. */
  readonly #open = new Set<string>();
  readonly #onEnd = new Set<() => void>();
  readonly #leaseMs: number;

  constructor(private readonly parts: OutboxParts) {
    this.#leaseMs = parts.leaseMs ?? defaultLeaseMs;
    this.#tasks = new BackgroundTasks((error, about) => {
      parts.world.log.error({ err: error, ...about }, 'queue task stuck');
    });
    this.#stopListening = parts.sessions.onChange(({ before, after }) => {
      const key = this.#bySession.get((after ?? before)?.id ?? '');
      if (key !== undefined && !isSamePhase(before, after)) this.#wake(key);
    });
  }

  get openCount(): number {
    return this.#open.size;
  }

  /** Called whenever a task is over. Returns how to stop listening. */
  onEnd(listener: () => void): () => void {
    this.#onEnd.add(listener);
    return () => void this.#onEnd.delete(listener);
  }

  /** Tracks a task until it is settled. */
  follow({ key, session_id }: QueueTask): void {
    this.#open.add(key);
    if (session_id !== null) this.#bySession.set(session_id, key);
    this.#renewAt.delete(key);
    this.#wake(key);
  }

  /** Pending reports are sent after the next start. */
  async close(): Promise<void> {
    this.#stopListening();
    this.#stop.abort();
    for (const timer of this.#timers.values()) timer.cancel();
    await this.#tasks.close();
  }

  /** Schedules the next step of a task. */
  #wake(key: string): void {
    this.#timers.get(key)?.cancel();
    this.#timers.delete(key);
    this.#tasks.runLatest(key, { task: key }, () => this.#advance(key));
  }

  #wakeIn(key: string, delayMs: number): void {
    if (this.#tasks.isClosed) return;
    this.#timers.get(key)?.cancel();
    const timer = this.parts.world.clock.after(delayMs, () => this.#wake(key));
    this.#timers.set(key, timer);
  }

  async #advance(key: string): Promise<void> {
    const task = await this.parts.store.find(key);
    if (!task || isOver(task) || task.session_id === null) return;
    const reported = task.report ? task : await this.#withReport(task, task.session_id);
    if (reported.report) await this.#sendReport(reported, reported.report);
    else await this.#extend(reported);
  }

  /** Stores the report once the session has ended. */
  async #withReport(task: QueueTask, sessionId: string): Promise<QueueTask> {
    const { store, sessions, world } = this.parts;
    const session = await sessions.find(sessionId);
    const now = world.clock.now();
    const report = session ? await this.#reportOn(session, now) : deletedReport;
    if (!report) return task;
    const reported = await store.change(task.key, (before) => ({
      ...before,
      state: 'reporting',
      report,
      reported_at: now,
      tries: 0,
    }));
    return reported ?? task;
  }

  async #reportOn(session: Session, now: number): Promise<Report | undefined> {
    const { sessions, exactUsdOf } = this.parts;
    if (!reportOf(session, { said: '' }, now)) return undefined;
    const { lines } = await sessions.output(session.id, { limit: outputLines });
    const answer = await sessions.lastAnswer(session.id);
    const exactUsd = (await exactUsdOf?.(session)) ?? null;
    return reportOf(session, { said: lines.join('\n'), answer, exactUsd }, now);
  }

  async #sendReport(task: QueueTask, report: Report): Promise<void> {
    const { client, world } = this.parts;
    const claim = { taskId: task.task_id, leaseToken: task.lease_token };
    const answer = await client.settle(claim, report, this.#stop.signal);
    if (this.#tasks.isClosed) return;
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
    const { client, store, world } = this.parts;
    const { key } = task;
    const waitMs = (this.#renewAt.get(key) ?? 0) - world.clock.now();
    if (waitMs > 0) return this.#wakeIn(key, waitMs);
    const claim = { taskId: task.task_id, leaseToken: task.lease_token };
    const progress = await this.#progress(task);
    const answer = await client.extend(claim, this.#leaseMs, this.#stop.signal, progress);
    if (this.#tasks.isClosed) return;
    if (answer.kind === 'lost') return this.#lost(task, answer.why);
    if (answer.kind !== 'ok') return this.#again(task, { afterMs: 0, ...answer });
    const now = world.clock.now();
    const leftMs = answer.leaseEndsAt === null ? 0 : answer.leaseEndsAt - now;
    const renewInMs = Math.min(this.#leaseMs / 3, Math.max(soonMs, leftMs / 2));
    this.#renewAt.set(key, now + renewInMs);
    if (task.tries > 0) await store.change(key, (before) => ({ ...before, tries: 0 }));
    this.#wakeIn(key, renewInMs);
  }

  async #progress({ session_id }: QueueTask): Promise<string | undefined> {
    const { progressOf, sessions } = this.parts;
    if (!progressOf || session_id === null) return undefined;
    const session = await sessions.find(session_id);
    return session && progressOf(session);
  }

  async #again(
    { key, task_id, tries }: QueueTask,
    { why, afterMs }: { why: string; afterMs: number },
  ): Promise<void> {
    const { store, world } = this.parts;
    const waitMs = Math.max(afterMs, backoffMs(backoff, tries + 1, world.random.next()));
    const fields = { task: task_id, tries: tries + 1, wait_ms: Math.round(waitMs) };
    // Warn at the first failure, then at powers of two, to limit repeated warnings.
    const level = (tries & (tries - 1)) === 0 ? 'warn' : 'debug';
    world.log[level]({ ...fields, reason: why }, 'failed to call the queue');
    await store.change(key, (before) => ({ ...before, tries: before.tries + 1 }));
    this.#wakeIn(key, waitMs);
  }

  async #lost(task: QueueTask, why: string): Promise<void> {
    this.parts.world.log.warn(
      { task: task.task_id, session: task.session_id, reason: why },
      'queue task lost, stopping its session',
    );
    await this.#end(task, 'lost');
  }

  async #giveUp(task: QueueTask, why: string): Promise<void> {
    this.parts.world.log.error(
      { task: task.task_id, session: task.session_id, reason: why },
      'failed to report the result of a queue task',
    );
    await this.#end(task, 'given_up');
  }

  /** Ends the task and stops its session, which could otherwise stay idle forever. */
  async #end(
    { key, session_id, lease_token }: QueueTask,
    state: QueueTask['state'],
  ): Promise<void> {
    const ended = await this.parts.store.change(key, (now) =>
      // A delivery with a new lease may have arrived meanwhile.
      now.lease_token === lease_token ? { ...now, state } : now,
    );
    if (ended && !isOver(ended)) return this.#wakeIn(key, 0);
    this.#renewAt.delete(key);
    this.#open.delete(key);
    for (const listener of this.#onEnd) listener();
    if (session_id === null) return;
    this.#bySession.delete(session_id);
    await stopSession(this.parts.sessions, session_id);
  }
}

const hourMs = 3_600_000;

/** Of calls to the queue. */
export const backoff = { initialMs: 1_000, maxMs: 60_000 };

/**
 * Delay until the budget may allow a session again. The daily spend resets at midnight; the weekly
 * window slides, so it is checked every hour.
 */
export function budgetRetryMs(verdict: BudgetVerdict | undefined, now: number): number {
  const isWeekFull =
    verdict !== undefined && verdict.cap_weekly > 0 && verdict.weekly_usd >= verdict.cap_weekly;
  const isDayFull =
    verdict !== undefined && verdict.cap_daily > 0 && verdict.daily_usd >= verdict.cap_daily;
  if (isWeekFull || !isDayFull) return hourMs;
  const midnight = new Date(now);
  midnight.setHours(24, 0, 0, 0);
  return midnight.getTime() - now;
}
