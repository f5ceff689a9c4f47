import type { Clock } from '@millrace/kit/clock';
import {
  StorageUnavailable,
  type Settlement,
  type SettleResult,
  type TaskStore,
} from '../storage/task-store.js';
import type { Lane } from './lane.js';
import type { Run } from './run.js';
import type { StoreHealth } from './store-health.js';

/** A claim that is to be settled. */
export interface Ending {
  run: Run;
  settlement: Settlement;
}

export interface SettlerTools {
  store: TaskStore;
  clock: Clock;
  health: StoreHealth;
  /** The store has these, and what is claimed from now on comes after them. */
  ending: (runs: Iterable<Run>) => void;
  /** `late`: the lease ended before the store could be told. */
  ended: (ending: Ending, result: SettleResult | 'late') => void;
  wake: (lane: Lane) => void;
  /** Called after the `ended` of all that were settled together. */
  afterGroup: () => void;
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

  constructor(private readonly tools: SettlerTools) {}

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
    const { store, clock, health } = this.tools;
    const now = clock.now();
    const isOver = this.#hasGivenUp && failures > 0;
    const current: Ending[] = [];
    for (const ending of group) {
      if (isOver || ending.run.leaseEnd <= now) this.tools.ended(ending, 'late');
      else current.push(ending);
    }
    let results: SettleResult[] = [];
    try {
      if (current.length > 0) {
        const settled = store.settle(current.map((ending) => ending.settlement));
        const isFirst = failures === 0;
        if (isFirst && store.capabilities.claimsFollowSettlements)
          this.tools.ending(runsOf(current));
        results = await settled;
        health.answered('settle');
      }
    } catch (error) {
      return await this.#again(current, failures, error);
    }
    current.forEach((ending, i) => this.tools.ended(ending, results[i]!));
    // What was claimed for their places while they were not settled yet may have come short.
    if (failures > 0) for (const { run } of current) this.tools.wake(run.lane);
    this.tools.afterGroup();
  }

  async #again(group: readonly Ending[], failures: number, error: unknown): Promise<void> {
    const { clock, health } = this.tools;
    await clock.sleep(health.failed('settle', error, failures));
    // One that the store cannot take must not keep the others from being settled.
    if (error instanceof StorageUnavailable || group.length === 1) {
      return this.#send(group, failures + 1);
    }
    await Promise.all(group.map((ending) => this.#send([ending], failures + 1)));
  }
}

function runsOf(endings: readonly Ending[]): Run[] {
  return endings.map((ending) => ending.run);
}
