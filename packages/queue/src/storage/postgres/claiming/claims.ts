import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { WholeTask } from '../../../core/task.js';
import { queueChanged } from '../../port/claimable.js';
import type { ClaimRequest } from '../../port/task-store.js';
import { textArray } from '../connection/arrays.js';
import type { Connections } from '../connection/connections.js';
import type { Counters } from '../rows/counters.js';
import { claim, lockAndPromote } from './claim.sql.js';
import { ClaimThrottle } from './claim-throttle.js';
import { toClaimedTask, type ClaimedRow } from './claimed-row.js';
import { LowWaterMarkSweeper } from './low-water-mark-sweeper.js';
import { ServerShare } from './server-share.js';
import { startStepMs } from '../../../core/start-window.js';

export interface ClaimsOptions {
  connections: Connections;
  counters: Counters;
  /** Identifies this server among those on the database. */
  instance: string;
  clock: Clock;
  log: Log;
}

/**
 * Claims due tasks. One claim of a queue runs at a time over all servers: it holds the claim lock
 * of the queue. See docs/explanation/queue-on-postgres.md.
 */
export class Claims {
  readonly share: ServerShare;
  readonly #throttle: ClaimThrottle;
  readonly #sweeper: LowWaterMarkSweeper;
  /** Queues whose last claim took as many tasks as the limits allowed: more may be ready. */
  readonly #limited = new Set<string>();
  /** How many claims of a queue run. */
  readonly #running = new Map<string, number>();

  constructor(private readonly options: ClaimsOptions) {
    const { connections, instance, clock, log } = options;
    this.share = new ServerShare(connections, instance, () => clock.monotonic());
    this.#throttle = new ClaimThrottle(clock);
    this.#sweeper = new LowWaterMarkSweeper(connections, () => clock.monotonic(), log);
  }

  async claim(request: ClaimRequest): Promise<WholeTask[]> {
    if (!request.isImmediate) await this.#throttle.wait(request);
    const { queue } = request;
    this.#running.set(queue, (this.#running.get(queue) ?? 0) + 1);
    try {
      return await this.#claimWithin(request);
    } finally {
      const left = this.#running.get(queue)! - 1;
      if (left > 0) this.#running.set(queue, left);
      else this.#running.delete(queue);
    }
  }

  /**
   * Whether a slot of `max_in_flight` that becomes free may let a task start. Otherwise the last
   * claim found nothing more to take, and only new work matters.
   */
  waitsForSlots(queue: string): boolean {
    return this.#limited.has(queue) || this.#running.has(queue);
  }

  async #claimWithin(request: ClaimRequest): Promise<WholeTask[]> {
    const { queue } = request;
    const limit = await this.share.room(request);
    if (limit < request.limit) this.#limited.add(queue);
    if (limit <= 0) return [];
    this.#sweeper.sweepIfDue(queue);
    const { tasks, isLimited } = await this.#claim(request, limit);
    if (isLimited) this.#limited.add(queue);
    else this.#limited.delete(queue);
    this.#throttle.claimed({ ...request, limit }, tasks.length);
    for (const { lease } of tasks) this.share.taken(queue, lease!.token, lease!.expiresAt);
    return tasks;
  }

  forget(queue: string): void {
    this.#sweeper.forget(queue);
    this.#limited.delete(queue);
  }

  close(): Promise<void> {
    return this.#sweeper.close();
  }

  async #claim(
    request: ClaimRequest,
    limit: number,
  ): Promise<{ tasks: WholeTask[]; isLimited: boolean }> {
    const { connections, counters } = this.options;
    const { queue, expected, now, handlers } = request;
    const tokens = Array.from({ length: limit }, () => request.newToken());
    const values = [
      queue,
      limit,
      request.maxInFlight,
      now,
      request.leaseExpiresAt,
      request.nodeId,
      textArray(tokens),
      request.dispatchPerSecond,
      request.fifoGroups,
      counters.firstEntry(queue),
      handlers ? textArray(handlers) : null,
      expected?.incarnation ?? null,
      expected?.version ?? null,
      Math.ceil(now / startStepMs) * startStepMs,
    ];
    const rows = await connections.transact(async (transaction) => {
      // Sent together: the claim lock is not held for a round trip of this server.
      const sent = [
        transaction.query(lockAndPromote, [queue, now]),
        transaction.queryLast<ClaimedRow>(claim, values),
      ] as const;
      return (await Promise.all(sent))[1];
    });
    const [first] = rows;
    if (!first && expected) throw queueChanged(queue);
    const tasks = rows
      .filter(([, position]) => position !== null)
      .toSorted((a, b) => a[1]! - b[1]!)
      .map((row) => toClaimedTask(row, request, tokens));
    return { tasks, isLimited: first !== undefined && tasks.length >= first[0] };
  }
}
