import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Outbound, OutboundOutcome } from '@millrace/kit/outbound';
import type { Random } from '@millrace/kit/random';
import {
  attemptRecord,
  lastErrorOf,
  urlWithoutQuery,
  type ClaimedTask,
} from '../core/attempt-record.js';
import { interrupted, outcomeOf, unsent, type Outcome } from '../core/outcome.js';
import type { Queue } from '../core/queue.js';
import type { AttemptOutcome, WholeTask } from '../core/task.js';
import { traceOf } from '../core/trace.js';
import { verdictOnFailure } from '../core/verdict.js';
import type { Settlement, SettleResult, TaskStore, Verdict } from '../storage/task-store.js';
import { callbackRequest } from './callback-request.js';
import type { Credentials } from './credentials.js';
import type { Lane } from './lane.js';
import { Run } from './run.js';
import type { Ending, Settler } from './settler.js';
import type { StoreHealth } from './store-health.js';

export interface RunnerTools {
  store: TaskStore;
  clock: Clock;
  random: Random;
  outbound: Outbound;
  health: StoreHealth;
  settler: Settler;
  /** The run no longer takes up a place. */
  release: (run: Run) => void;
  /** Places became free: use them. */
  pump: () => void;
}

/** Makes callbacks and says how they ended. */
export class Runner {
  /** By lease token. */
  readonly runs = new Map<string, Run>();
  readonly #abort = new AbortController();
  #isStopping = false;
  #hasGivenUp = false;

  constructor(private readonly tools: RunnerTools) {}

  get count(): number {
    return this.runs.size;
  }

  stop(): void {
    this.#isStopping = true;
  }

  /** Breaks off what is under way; those tasks are handed back. */
  abort(): void {
    this.#abort.abort();
  }

  giveUp(): void {
    this.#hasGivenUp = true;
  }

  start(lane: Lane, queue: Queue, credentials: Credentials, task: WholeTask & ClaimedTask): void {
    const run = this.#enter(lane, queue, task);
    const now = this.tools.clock.now();
    const leftMs = run.leaseEnd - now;
    // The claim took longer than the lease lasts: whoever finds it ended will decide.
    if (leftMs <= 0) return this.#late(run);
    const { config } = queue;
    const timeoutMs = Math.min(config.callback.timeout_ms, leftMs);
    const { signal } = this.#abort;
    try {
      const subject = subjectOf(run);
      const request = callbackRequest(subject, { config, credentials, now, timeoutMs, signal });
      this.tools.outbound.request(request).then(
        (outcome) => this.#answered(run, outcome),
        (error: unknown) => this.#end(run, unsent(messageOf(error)), false),
      );
    } catch (error) {
      this.#end(run, unsent(messageOf(error)), false);
    }
  }

  /** Gives a task back that was claimed while the server began to shut down. */
  handBack(lane: Lane, queue: Queue, task: WholeTask & ClaimedTask): void {
    this.#end(this.#enter(lane, queue, task), interrupted(), false);
  }

  #enter(lane: Lane, queue: Queue, task: WholeTask & ClaimedTask): Run {
    const trace = traceOf(task.headers, task.lease.token);
    const mark = lane.breaker?.start() ?? 0;
    const run = new Run(lane, queue, task, trace, mark, this.tools.clock.monotonic());
    this.runs.set(task.lease.token, run);
    return run;
  }

  #answered(run: Run, answer: OutboundOutcome): void {
    const outcome = outcomeOf(answer, run.queue.config.retry, this.tools.clock.now());
    run.lane.series.durations.observe(answer.durationMs / 1000);
    this.#end(run, outcome, true);
  }

  #end(run: Run, outcome: Outcome, wasSent: boolean): void {
    run.lane.series.delivery(outcome.kind).inc();
    run.lane.callEnded(run.mark, outcome.health);
    if (outcome.kind === 'async') return void this.#handOver(run);
    const settlement = this.#settlementOf(run, outcome, wasSent);
    this.tools.settler.add({ run, settlement });
  }

  #settlementOf(run: Run, outcome: Outcome, wasSent: boolean): Settlement {
    const { task, queue, trace } = run;
    const now = this.tools.clock.now();
    const verdict = this.#verdictOf(run, outcome, now);
    const attempt = attemptRecord(task, {
      outcome: nameOf(outcome, verdict),
      now,
      errorType: outcome.errorType,
      message: outcome.message,
      httpStatus: outcome.httpStatus,
      retryAfterMs: outcome.retryAfterMs,
      nextAttemptAt: 'dueAt' in verdict ? verdict.dueAt : null,
      snippet: outcome.snippet,
      url: wasSent ? urlWithoutQuery(queue.config.callback.url) : null,
      remoteIp: outcome.remoteIp,
      traceId: wasSent ? trace.traceId : null,
    });
    const { id, lease } = task;
    return { id, token: lease.token, now, verdict, attempt, error: lastErrorOf(outcome, now) };
  }

  #verdictOf(run: Run, outcome: Outcome, now: number): Verdict {
    if (outcome.kind === 'succeeded') return { kind: 'succeeded' };
    if (outcome.kind === 'interrupted') {
      // Whoever closed the connections under us must not make us spin.
      return { kind: 'handed_back', dueAt: this.#isStopping ? now : now + 1_000 };
    }
    return verdictOnFailure(outcome, {
      attempt: run.task.attempt,
      policy: run.queue.config.retry,
      now,
      chance: this.tools.random.next(),
    });
  }

  /** The store was told, or it was too late for that. */
  settled({ run, settlement }: Ending, result: SettleResult | 'late'): void {
    const { series, alarm } = run.lane;
    const { verdict } = settlement;
    if (result === 'late') return this.#late(run);
    if (result.kind === 'settled') {
      if (verdict.kind === 'dead') series.dead(verdict.reason).inc();
      if (verdict.kind === 'retry') series.retries.inc();
      if ('dueAt' in verdict) alarm.ringIn(verdict.dueAt - this.tools.clock.now());
    } else if (result.kind === 'lease_lost') series.lateAnswers.inc();
    this.#leave(run);
  }

  #late(run: Run): void {
    run.lane.series.lateAnswers.inc();
    this.#leave(run);
  }

  #leave(run: Run): void {
    this.runs.delete(run.task.lease.token);
    this.tools.release(run);
  }

  /**
   * The handler goes on by itself: its lease now lasts for `async_timeout_ms`, be that shorter than
   * what was left of the callback's. What an `:extend` gave before the answer is not taken back.
   */
  async #handOver(run: Run): Promise<void> {
    const { store, clock, health } = this.tools;
    const { id, lease } = run.task;
    const asyncTimeoutMs = run.queue.config.callback.async_timeout_ms;
    await run.inTurn(async () => {
      for (let failures = 0; run.leaseEnd > clock.now(); failures++) {
        const now = clock.now();
        const given = run.leaseEnd > lease.expiresAt ? run.leaseEnd : 0;
        const expiresAt = Math.max(given, now + asyncTimeoutMs);
        try {
          await store.extendLease({ id, token: lease.token, expiresAt, isAsync: true, now });
          return health.answered('extend');
        } catch (error) {
          const pauseMs = health.failed('extend', error, failures);
          if (this.#hasGivenUp) return;
          await clock.sleep(pauseMs);
        }
      }
      run.lane.series.lateAnswers.inc();
    });
    this.#leave(run);
    this.tools.pump();
  }
}

const outcomeNames = {
  succeeded: 'SUCCEEDED',
  async: 'SUCCEEDED',
  failed: 'FAILED',
  interrupted: 'INTERRUPTED',
} as const;

function nameOf({ kind }: Outcome, verdict: Verdict): AttemptOutcome {
  const isDeferred = kind === 'failed' && verdict.kind === 'handed_back';
  return isDeferred ? 'DEFERRED' : outcomeNames[kind];
}

function subjectOf({ task, trace }: Run) {
  return {
    id: task.id,
    queue: task.queue,
    handlerRef: task.handlerRef,
    payloadContentType: task.payloadContentType,
    headers: task.headers,
    attempt: task.attempt,
    redriveCount: task.redriveCount,
    payload: task.payload,
    leaseToken: task.lease.token,
    trace,
  };
}
