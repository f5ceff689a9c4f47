import type { Clock } from '@millrace/kit/clock';
import {
  StorageUnavailable,
  type Settlement,
  type SettleResult,
  type TaskStore,
} from '../storage/task-store.js';
import type { StoreHealth } from './store-health.js';

/** A claim that is to be settled. */
export interface Ending {
  settlement: Settlement;
  /** The end of the lease, after which nothing is settled any more. */
  leaseEnd(): number;
  /** `late`: the lease ended before the store could be told. */
  done(result: SettleResult | 'late'): void;
}

const mostPerCall = 500;

/**
 * Settles claims. What arrives in one turn of the event loop goes to the store in one call, so that
 * thousands of callbacks a second share commits. A store that fails is asked again until the lease
 * is over; whether the first call took effect does not matter, as settling can be repeated.
 */
export class Settler {
  #waiting: Ending[] = [];
  #hasGivenUp = false;

  constructor(
    private readonly store: TaskStore,
    private readonly clock: Clock,
    private readonly health: StoreHealth,
    /** Called after the `done` of all that were settled together. */
    private readonly afterGroup: () => void,
  ) {}

  add(ending: Ending): void {
    this.#waiting.push(ending);
    if (this.#waiting.length === 1) setImmediate(() => this.#flush());
  }

  /** Tries no failed call again: what is not settled by then is left to its lease. */
  giveUp(): void {
    this.#hasGivenUp = true;
  }

  #flush(): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (let from = 0; from < all.length; from += mostPerCall) {
      void this.#send(all.slice(from, from + mostPerCall), 0);
    }
  }

  async #send(group: readonly Ending[], failures: number): Promise<void> {
    const now = this.clock.now();
    const isOver = this.#hasGivenUp && failures > 0;
    const current: Ending[] = [];
    for (const ending of group) {
      if (isOver || ending.leaseEnd() <= now) ending.done('late');
      else current.push(ending);
    }
    let results: SettleResult[] = [];
    try {
      if (current.length > 0) {
        results = await this.store.settle(current.map((ending) => ending.settlement));
        this.health.answered('settle');
      }
    } catch (error) {
      return await this.#again(current, failures, error);
    }
    current.forEach((ending, i) => ending.done(results[i]!));
    this.afterGroup();
  }

  async #again(group: readonly Ending[], failures: number, error: unknown): Promise<void> {
    await this.clock.sleep(this.health.failed('settle', error, failures));
    // One that the store cannot take must not keep the others from being settled.
    if (error instanceof StorageUnavailable || group.length === 1) {
      return this.#send(group, failures + 1);
    }
    await Promise.all(group.map((ending) => this.#send([ending], failures + 1)));
  }
}
