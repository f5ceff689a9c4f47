import type { ClaimRequest } from '../../port/task-store.js';
import type { Connections } from '../connection/connections.js';
import { joinClaimants } from '../statements/instances.sql.js';

interface QueueShare {
  /** Servers that recently claimed from this queue, this one included. */
  claimants: number;
  joinedAt: number;
  /** When the leases of this server expire, by token. */
  leases: Map<string, number>;
}

const joinIntervalMs = 1_000;
/** A count of claimants older than this is read again before a claim. */
const maxCountAgeMs = 3_000;

/**
 * Splits `max_in_flight` evenly between the servers that claim from a queue. Otherwise the first one
 * would take all slots, and each freed slot again. A server that stops claiming stops counting five
 * seconds later.
 */
export class ServerShare {
  readonly #queues = new Map<string, QueueShare>();

  constructor(
    private readonly connections: Connections,
    private readonly instance: string,
    private readonly monotonic: () => number,
  ) {}

  /** How many tasks this server may claim. */
  async room({ queue, limit, maxInFlight, now }: ClaimRequest): Promise<number> {
    const share = this.#share(queue);
    const ageMs = this.monotonic() - share.joinedAt;
    if (ageMs >= joinIntervalMs) {
      const joined = this.#join(queue, share);
      if (ageMs >= maxCountAgeMs) await joined;
      // The claim does not wait for the disk; if the database is away, it fails itself.
      else joined.catch(() => undefined);
    }
    if (share.claimants === 1) return limit;
    for (const [token, end] of share.leases) if (end <= now) share.leases.delete(token);
    const part = Math.ceil(maxInFlight / share.claimants);
    return Math.min(limit, part - share.leases.size);
  }

  taken(queue: string, token: string, leaseExpiresAt: number): void {
    this.#share(queue).leases.set(token, leaseExpiresAt);
  }

  /** A lease that another server took counts there. */
  extended(queue: string, token: string, leaseExpiresAt: number): void {
    const leases = this.#queues.get(queue)?.leases;
    if (leases?.has(token)) leases.set(token, leaseExpiresAt);
  }

  ended(queue: string, token: string): void {
    this.#queues.get(queue)?.leases.delete(token);
  }

  async #join(queue: string, share: QueueShare): Promise<void> {
    share.joinedAt = this.monotonic();
    const values = [queue, this.instance];
    const [row] = await this.connections.query<{ claimants: number }>(joinClaimants, values);
    share.claimants = row?.claimants ?? 1;
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
