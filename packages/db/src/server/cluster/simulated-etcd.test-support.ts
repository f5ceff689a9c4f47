import type { Simulation } from '@millrace/kit/simulation';
import { EtcdError, type Compare, type EtcdPort, type KeyValue, type Operation } from './etcd.js';

interface StoredLease {
  ttlMs: number;
  expiresAt: number;
}

/** etcd in virtual time: keys with revisions, and leases that expire. */
export class SimulatedEtcd {
  readonly #rows = new Map<string, KeyValue>();
  readonly #leases = new Map<string, StoredLease>();
  #revision = 0;
  #lastLease = 0;
  #isDown = false;

  constructor(private readonly world: Simulation) {}

  set isDown(isDown: boolean) {
    // A new leader of etcd gives every lease its whole TTL again.
    if (this.#isDown && !isDown) {
      for (const lease of this.#leases.values()) lease.expiresAt = this.#now + lease.ttlMs;
    }
    this.#isDown = isDown;
  }

  /** The API as one node reaches it: `hop` delays a message or throws when it is lost. */
  portOf(hop: () => Promise<void>): EtcdPort {
    const exchange = async <Answer>(run: () => Answer): Promise<Answer> => {
      await hop();
      if (this.#isDown) throw new EtcdError('etcd is down');
      this.#expire();
      const answer = run();
      // Most answers arrive at once, which keeps long runs short.
      if (this.world.random.next() < 0.2) await hop();
      return answer;
    };
    return {
      grant: (ttlSeconds) => exchange(() => this.#grant(ttlSeconds * 1000)),
      keepAlive: (id) => exchange(() => this.#keepAlive(id)),
      revoke: (id) => exchange(() => this.#drop(id)),
      list: (prefix) =>
        exchange(() => [...this.#rows.values()].filter(({ key }) => key.startsWith(prefix))),
      transact: (compares, operations) => exchange(() => this.#transact(compares, operations)),
      close: () => undefined,
    };
  }

  get #now(): number {
    return this.world.clock.monotonic();
  }

  #grant(ttlMs: number) {
    const id = String(++this.#lastLease);
    this.#leases.set(id, { ttlMs, expiresAt: this.#now + ttlMs });
    return { id, ttlMs };
  }

  #keepAlive(id: string): boolean {
    const lease = this.#leases.get(id);
    if (lease) lease.expiresAt = this.#now + lease.ttlMs;
    return lease !== undefined;
  }

  #expire(): void {
    for (const [id, { expiresAt }] of this.#leases) if (expiresAt <= this.#now) this.#drop(id);
  }

  #drop(id: string): void {
    this.#leases.delete(id);
    for (const [key, { lease }] of this.#rows) if (lease === id) this.#rows.delete(key);
  }

  #transact(compares: readonly Compare[], operations: readonly Operation[]): boolean {
    const revisionOf = (key: string) => this.#rows.get(key)?.modRevision ?? '0';
    if (compares.some(({ key, modRevision }) => revisionOf(key) !== modRevision)) return false;
    const modRevision = String(++this.#revision);
    for (const operation of operations) {
      if ('delete' in operation) this.#rows.delete(operation.delete);
      else {
        const { put: key, value, lease = '0' } = operation;
        if (lease !== '0' && !this.#leases.has(lease)) throw new EtcdError('no such lease', 5);
        this.#rows.set(key, { key, value, modRevision, lease });
      }
    }
    return true;
  }
}
