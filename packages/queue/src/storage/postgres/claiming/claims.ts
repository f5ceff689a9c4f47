import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { WholeTask } from '../../../core/task.js';
import { queueChanged } from '../../port/claimable.js';
import type { ClaimRequest } from '../../port/task-store.js';
import { textArray } from '../connection/arrays.js';
import type { Connections } from '../connection/connections.js';
import type { Counters } from '../rows/counters.js';
import { claim, promote, readClaimed } from './claim.sql.js';
import { ClaimThrottle } from './claim-throttle.js';
import { toClaimedTask, type ClaimedRow, type FixedRow, type RoomRow } from './claimed-row.js';
import { LowWaterMarkSweeper } from './low-water-mark-sweeper.js';
import { ServerShare } from './server-share.js';
import { lockForClaims } from '../statements/room.sql.js';

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
    ];
    const answer = await connections.transact(async (transaction) => {
      // Sent together: the claim lock is not held for a round trip of this server.
      const sent = [
        transaction.query(lockForClaims, [[queue]]),
        transaction.query(promote, [queue, now]),
        transaction.queryLast<ClaimedRow | RoomRow>(claim, values),
      ] as const;
      const [, , claimed] = await Promise.all(sent);
      return claimed;
    });
    const rows = answer.filter((row): row is ClaimedRow => row[0] !== null);
    const room = answer.find((row) => row[0] === null)?.[1];
    if (room === undefined && expected) throw queueChanged(queue);
    const isLimited = room !== undefined && rows.length >= room;
    if (rows.length === 0) return { tasks: [], isLimited };
    const found = await connections.query<FixedRow>(readClaimed, [
      textArray(rows.map(([id]) => id)),
    ]);
    const fixedById = new Map(found.map((fixed) => [fixed[0], fixed]));
    const tasks = rows
      .toSorted((a, b) => a[1] - b[1])
      .flatMap((row) => {
        const fixed = fixedById.get(row[0]);
        // Deleted since: its lease expired before it was read.
        return fixed ? [toClaimedTask(row, fixed, request, tokens)] : [];
      });
    return { tasks, isLimited };
  }
}
