import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import {
  attemptRecord,
  isClaimed,
  lastErrorOf,
  urlWithoutQuery,
  type ClaimedTask,
} from '../core/attempt-record.js';
import type { Queue } from '../core/queue.js';
import type { WholeTask } from '../core/task.js';
import { verdictOnEndedLease } from '../core/verdict.js';
import type { Settlement, TaskStore } from '../storage/task-store.js';
import type { Lane } from './lane.js';

export interface UpkeepTools {
  store: TaskStore;
  clock: Clock;
  random: Random;
  lane: (queue: string) => Lane;
  wake: (lane: Lane) => void;
}

const leasesPerStep = 200;
const expiriesPerStep = 500;

/**
 * Ends what nobody else will end: leases that ran out, of this server's tasks or of one that is
 * gone, and tasks that expired while they waited.
 */
export class Upkeep {
  constructor(private readonly tools: UpkeepTools) {}

  async run(): Promise<void> {
    await this.#endLeases();
    await this.#expire();
  }

  async #endLeases(): Promise<void> {
    const { store, clock } = this.tools;
    const queues = new Map<string, Queue | undefined>();
    for (;;) {
      const now = clock.now();
      const ended = await store.endedLeases({ now, limit: leasesPerStep });
      const settlements: Settlement[] = [];
      for (const task of ended.filter(isClaimed)) {
        if (!queues.has(task.queue)) queues.set(task.queue, await store.getQueue(task.queue));
        const queue = queues.get(task.queue);
        if (queue) settlements.push(this.#settlementOf(task, queue, now));
      }
      if (settlements.length === 0) return;
      const results = await store.settle(settlements);
      results.forEach((result, i) => {
        if (result.kind === 'settled') this.#count(result.task.queue, settlements[i]!);
      });
      if (ended.length < leasesPerStep) return;
    }
  }

  #settlementOf(task: WholeTask & ClaimedTask, queue: Queue, now: number): Settlement {
    const verdict = verdictOnEndedLease({
      attempt: task.attempt,
      policy: queue.config.retry,
      now,
      chance: this.tools.random.next(),
    });
    const failure = {
      errorType: 'LEASE_EXPIRED',
      message: task.lease.isAsync
        ? 'The lease ran out before the handler reported the end of its work'
        : 'The lease ran out before the attempt was settled',
      httpStatus: null,
    };
    const attempt = attemptRecord(task, {
      outcome: 'LEASE_EXPIRED',
      now,
      errorType: failure.errorType,
      message: failure.message,
      nextAttemptAt: 'dueAt' in verdict ? verdict.dueAt : null,
      url: task.lease.isAsync ? urlWithoutQuery(queue.config.callback.url) : null,
    });
    const error = lastErrorOf(failure, now);
    return { id: task.id, token: task.lease.token, now, verdict, attempt, error };
  }

  #count(queue: string, { verdict, now }: Settlement): void {
    const lane = this.tools.lane(queue);
    lane.series.leaseExpiries.inc();
    if (verdict.kind === 'dead') lane.series.dead(verdict.reason).inc();
    if (verdict.kind === 'retry') {
      lane.series.retries.inc();
      lane.alarm.ringIn(verdict.dueAt - now);
    }
    this.tools.wake(lane);
  }

  async #expire(): Promise<void> {
    const { store, clock } = this.tools;
    for (;;) {
      const expired = await store.expireTasks({ now: clock.now(), limit: expiriesPerStep });
      for (const task of expired) {
        const lane = this.tools.lane(task.queue);
        lane.series.dead('EXPIRED').inc();
        this.tools.wake(lane);
      }
      if (expired.length < expiriesPerStep) return;
    }
  }
}
