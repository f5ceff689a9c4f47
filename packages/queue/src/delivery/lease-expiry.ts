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
import type { TaskObserver } from '../background/index.js';
import type { Settlement, TaskStore } from '../storage/port/task-store.js';
import type { Emit } from './state/events.js';

export interface LeaseExpiryOptions {
  store: TaskStore;
  observer: TaskObserver;
  clock: Clock;
  random: Random;
  onLeaseExpired: (queue: string, token: string) => void;
  emit: Emit;
}

const maxLeasesPerStep = 200;
const maxTasksPerStep = 500;

/** Ends expired leases, whichever server took them, and tasks that expired before a claim. */
export class LeaseExpiry {
  constructor(private readonly options: LeaseExpiryOptions) {}

  async run(): Promise<void> {
    await this.#expireLeases();
    await this.#expireTasks();
  }

  async #expireLeases(): Promise<void> {
    const { store, clock, observer } = this.options;
    const queues = new Map<string, Queue | undefined>();
    for (;;) {
      const now = clock.now();
      const ended = await store.endedLeases({ now, limit: maxLeasesPerStep });
      const settlements: Settlement[] = [];
      for (const task of ended.filter(isClaimed)) {
        if (!queues.has(task.queue)) queues.set(task.queue, await store.getQueue(task.queue));
        const queue = queues.get(task.queue);
        if (queue) settlements.push(this.#settlementOf(task, queue, now));
      }
      if (settlements.length === 0) return;
      const results = await store.settle(settlements);
      observer.settled(settlements, results);
      results.forEach((result, i) => {
        if (result.kind !== 'settled') return;
        const { verdict } = settlements[i]!;
        const { queue } = result.task;
        this.options.onLeaseExpired(queue, settlements[i]!.token);
        this.options.emit({ kind: 'lease_expired', queue, verdict, at: now });
      });
      if (ended.length < maxLeasesPerStep) return;
    }
  }

  #settlementOf(task: WholeTask & ClaimedTask, queue: Queue, now: number): Settlement {
    const verdict = verdictOnEndedLease({
      attempt: task.attempt,
      policy: queue.config.retry,
      now,
      chance: this.options.random.next(),
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
    return { id: task.id, token: task.lease.token, now, verdict, attempt, error, expiredBy: now };
  }

  async #expireTasks(): Promise<void> {
    const { store, clock, observer, emit } = this.options;
    for (;;) {
      const expired = await store.expireTasks({ now: clock.now(), limit: maxTasksPerStep });
      for (const { queue } of expired) {
        observer.expired(queue);
        emit({ kind: 'task_expired', queue });
      }
      if (expired.length < maxTasksPerStep) return;
    }
  }
}
