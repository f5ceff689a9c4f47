import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { WholeTask } from '../../../core/task.js';
import type { ClaimRequest } from '../../task-store.js';
import { textArray } from '../arrays.js';
import type { Connections } from '../connections.js';
import type { Counters } from '../counters.js';
import { claim, promote, readClaimed } from './claim.sql.js';
import { ClaimThrottle } from './claim-throttle.js';
import { toClaimedTask, type ClaimedRow, type FixedRow } from './claimed-row.js';
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

  constructor(private readonly options: ClaimsOptions) {
    const { connections, instance, clock, log } = options;
    this.share = new ServerShare(connections, instance, () => clock.monotonic());
    this.#throttle = new ClaimThrottle(clock);
    this.#sweeper = new LowWaterMarkSweeper(connections, () => clock.monotonic(), log);
  }

  async claim(request: ClaimRequest): Promise<WholeTask[]> {
    if (!request.isImmediate) await this.#throttle.wait(request);
    const limit = await this.share.room(request);
    if (limit <= 0) return [];
    this.#sweeper.sweepIfDue(request.queue);
    const tasks = await this.#claim(request, limit);
    this.#throttle.claimed({ ...request, limit }, tasks.length);
    for (const { lease } of tasks) this.share.taken(request.queue, lease!.token, lease!.expiresAt);
    return tasks;
  }

  forget(queue: string): void {
    this.#sweeper.forget(queue);
  }

  close(): Promise<void> {
    return this.#sweeper.close();
  }

  async #claim(request: ClaimRequest, limit: number): Promise<WholeTask[]> {
    const { connections, counters } = this.options;
    const { queue, now, handlers } = request;
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
    ];
    const rows = await connections.transact(async (transaction) => {
      // Sent together: the claim lock is not held for a round trip of this server.
      const sent = [
        transaction.query(lockForClaims, [[queue]]),
        transaction.query(promote, [queue, now]),
        transaction.queryLast<ClaimedRow>(claim, values),
      ] as const;
      const [, , claimed] = await Promise.all(sent);
      return claimed;
    });
    if (rows.length === 0) return [];
    const found = await connections.query<FixedRow>(readClaimed, [
      textArray(rows.map(([id]) => id)),
    ]);
    const fixedById = new Map(found.map((fixed) => [fixed[0], fixed]));
    return rows
      .toSorted((a, b) => a[1] - b[1])
      .flatMap((row) => {
        const fixed = fixedById.get(row[0]);
        // Deleted since: its lease expired before it was read.
        return fixed ? [toClaimedTask(row, fixed, request, tokens)] : [];
      });
  }
}
