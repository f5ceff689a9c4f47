import { sleepOn, type Clock, type Timer } from '../base/clock.js';
import type { MemoryLog } from '../base/log.js';
import type { Random } from '../base/random.js';
import type { World } from '../base/world.js';
import { guard, type GuardOptions } from './guard.js';
import type { Activity, Rest } from './rest.js';
import type { Timeline } from './timeline.js';

/** The simulation as one of its machines sees it. */
export interface SimulatedWorld {
  readonly activity: Activity;
  readonly rest: Rest;
  readonly timeline: Timeline;
  between(range: readonly [low: number, high: number]): number;
  fail(error: unknown): void;
  fault(name: string, scope: string): boolean;
  note(kind: string, fields: object, scope: string): void;
  rankOf(scope: string, at: number): number;
  wallTime(): number;
}

/**
 * One machine of the simulated world, or the world itself: a clock, chance and a log of its own.
 * After a crash nothing of it goes on: its timers never fire and its promises never settle.
 */
export class Scope implements World {
  readonly clock: Clock;
  #alive = true;
  #skewMs = 0;
  readonly #timers = new Set<Timer>();

  constructor(
    readonly name: string,
    /** 1 for the first life of a node, 2 after its first crash. */
    readonly life: number,
    readonly random: Random,
    readonly log: MemoryLog,
    readonly world: SimulatedWorld,
  ) {
    this.clock = {
      now: () => Math.floor(world.wallTime() + this.#skewMs),
      monotonic: () => world.timeline.elapsedMs,
      after: (delayMs, run) => this.#after(delayMs, run),
      sleep: (delayMs, signal) => this.deliver(sleepOn(this.clock, delayMs, signal)),
    };
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Sets the wall clock forward or back. Timers use the monotonic clock and do not change. */
  jumpClock(byMs: number): void {
    this.#skewMs += byMs;
    this.world.note('clock jump', { by_ms: byMs }, this.name);
  }

  crash(): void {
    if (!this.#alive) return;
    this.#alive = false;
    for (const timer of this.#timers) timer.cancel();
    this.world.note('crash', {}, this.name);
  }

  /**
   * Starts something that goes on in the background. Its failure fails the run, unless the node
   * has crashed by then.
   */
  start(task: () => Promise<unknown>): void {
    void this.deliver(task()).catch((error: unknown) => this.world.fail(error));
  }

  /** Registers real work, such as a disk write, so that virtual time waits for it. */
  pending<T>(promise: Promise<T>, label = 'work'): Promise<T> {
    return this.deliver(this.world.rest.register(promise, label));
  }

  /** A port as this node sees it: see `guard.ts`. */
  guard<T extends object>(port: T, options: GuardOptions = {}): T {
    return guard(this, port, options);
  }

  /** The same result, but nothing of it reaches a node that has crashed. */
  deliver<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      promise.then(
        (value) => this.#alive && resolve(value),
        (error: unknown) => this.#alive && reject(error),
      );
    });
  }

  #after(delayMs: number, run: () => void): Timer {
    const { world } = this;
    world.activity.count++;
    if (!this.#alive) return { cancel: () => {} };
    const rankOf = (at: number) => world.rankOf(this.name, at);
    const timer = world.timeline.after(delayMs, this.name, rankOf, () => {
      this.#timers.delete(timer);
      run();
    });
    this.#timers.add(timer);
    return {
      cancel: () => {
        world.activity.count++;
        this.#timers.delete(timer);
        timer.cancel();
      },
    };
  }
}
