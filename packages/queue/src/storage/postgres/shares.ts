import type { ClaimAsk } from '../task-store.js';
import type { Connections } from './connections.js';
import { joinClaimants } from './statements/instances.sql.js';

interface QueueShare {
  /** Servers that wanted tasks of this queue lately, this one included. */
  claimants: number;
  joinedAt: number;
  /** The ends of this server's leases, by token. */
  leases: Map<string, number>;
}

const joinEveryMs = 1_000;

/**
 * Where a queue may only have so many tasks in flight, the first server that asks would take all of
 * them, and each freed place again. So servers that want tasks of the same queue take no more than
 * their part each. One that no longer asks no longer counts, five seconds later.
 */
export class Shares {
  readonly #queues = new Map<string, QueueShare>();

  constructor(
    private readonly connections: Connections,
    private readonly instance: string,
    private readonly monotonic: () => number,
  ) {}

  /** How many this server may claim. */
  async room({ queue, limit, maxInFlight, now }: ClaimAsk): Promise<number> {
    const share = this.#share(queue);
    if (this.monotonic() - share.joinedAt >= joinEveryMs) {
      share.joinedAt = this.monotonic();
      const [row] = await this.connections.ask<{ claimants: number }>(joinClaimants, [
        queue,
        this.instance,
      ]);
      share.claimants = row?.claimants ?? 1;
    }
    if (share.claimants === 1) return limit;
    for (const [token, end] of share.leases) if (end <= now) share.leases.delete(token);
    const part = Math.ceil(maxInFlight / share.claimants);
    return Math.min(limit, part - share.leases.size);
  }

  taken(queue: string, token: string, leaseEnd: number): void {
    this.#share(queue).leases.set(token, leaseEnd);
  }

  ended(queue: string, token: string): void {
    this.#queues.get(queue)?.leases.delete(token);
  }

  #share(queue: string): QueueShare {
    let share = this.#queues.get(queue);
    if (!share) {
      share = { claimants: 1, joinedAt: -Infinity, leases: new Map() };
      this.#queues.set(queue, share);
    }
    return share;
  }
}
