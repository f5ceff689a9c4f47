/** Share of the TTL after which a leader that could not renew its lease stops accepting writes. */
const safeShare = 2 / 3;

/**
 * What this node knows about its lease in etcd. Times are of the monotonic clock. A renewal counts
 * from the moment its request was sent, so the lease in etcd always ends later than here.
 */
export class Lease {
  #id: string | undefined;
  #renewedAt = -Infinity;
  #ttlMs: number;

  constructor(private readonly wantedTtlMs: number) {
    this.#ttlMs = wantedTtlMs;
  }

  get id(): string | undefined {
    return this.#id;
  }

  /** etcd granted a lease; the request was sent at `sentAt`. */
  granted(id: string, ttlMs: number, sentAt: number): void {
    this.#id = id;
    this.#renewedAt = sentAt;
    // etcd may grant more than wanted; the shorter one is safe.
    this.#ttlMs = Math.min(ttlMs, this.wantedTtlMs);
  }

  renewed(id: string, sentAt: number): void {
    if (id === this.#id) this.#renewedAt = Math.max(this.#renewedAt, sentAt);
  }

  /** etcd no longer knows the lease, or it was given up. */
  lost(): void {
    this.#id = undefined;
    this.#renewedAt = -Infinity;
  }

  /** Whether no other node can lead yet, with a third of the TTL to spare. */
  isValid(now: number): boolean {
    return this.#id !== undefined && now < this.validUntil;
  }

  get validUntil(): number {
    return this.#renewedAt + this.#ttlMs * safeShare;
  }

  /** Whether it is time to renew. */
  isDue(now: number): boolean {
    return now >= this.#renewedAt + this.#ttlMs / 5;
  }
}
