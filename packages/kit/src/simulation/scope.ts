import { type Clock, sleepOn, type Timer, type Random } from '../base/clock-and-random.js';
import type { Activity, Rest } from './rest.js';
import type { MemoryLog } from '../base/log.js';
import type { World } from '../base/world.js';
import type { Timeline } from './timeline.js';
import { messageOf } from '../base/errors.js';
import { formatDuration } from '../base/units.js';

export interface GuardOptions {
  /**
   * Names the fault points of the port. With `name: 'store'` these are `store.crash_before` and
   * `store.crash_after` (the node dies before the call takes effect, or after it but before the
   * answer), `store.fail_before` and `store.fail_after` (the same, but the call fails: in the
   * second case the caller cannot know that it took effect).
   */
  name?: string;
  /** The error of a call that was made to fail. */
  error?: (method: string) => Error;
  /** Range of the virtual latency of results. */
  latencyMs?: readonly [low: number, high: number];
  /** The port does real work: virtual time waits for its results. */
  io?: boolean;
}

/** The node whose calls are guarded. */
interface GuardedNode {
  readonly name: string;
  readonly alive: boolean;
  readonly clock: Clock;
  readonly world: {
    readonly activity: Activity;
    between(range: readonly [low: number, high: number]): number;
    fault(name: string, scope: string): boolean;
  };
  crash(): void;
  deliver<T>(promise: Promise<T>): Promise<T>;
  pending<T>(promise: Promise<T>, label: string): Promise<T>;
}

/**
 * Wraps a port, such as a store or the network, for one node. After a crash of the node, its calls
 * no longer reach the port and no result reaches the node. Results that are streams are wrapped
 * too, but never count as real work: a change feed may wait for virtual time.
 */
function guard<T extends object>(node: GuardedNode, port: T, options: GuardOptions): T {
  return new Proxy(port, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        const call = () => Reflect.apply(member, target, args) as unknown;
        return new GuardedCall(node, String(property), options).run(call);
      };
    },
  });
}

class GuardedCall {
  constructor(
    private readonly node: GuardedNode,
    private readonly method: string,
    private readonly options: GuardOptions,
  ) {}

  run(call: () => unknown): unknown {
    const { node } = this;
    node.world.activity.count++;
    if (!node.alive) return never();
    if (this.#fault('crash_before')) return this.#crash();
    if (this.#fault('fail_before')) return Promise.reject(this.#failure());
    const answer = call();
    if (isThenable(answer)) return this.#answer(Promise.resolve(answer));
    if (isStream(answer)) return guard(node, answer, {});
    return answer;
  }

  async #answer(answer: Promise<unknown>): Promise<unknown> {
    const { node, options } = this;
    let value = await (options.io
      ? node.pending(answer, `${options.name ?? 'port'}.${this.method}`)
      : node.deliver(answer));
    if (this.#fault('crash_after')) return this.#crash();
    if (options.latencyMs) await node.clock.sleep(node.world.between(options.latencyMs));
    if (this.#fault('fail_after')) throw this.#failure();
    if (isStream(value)) value = guard(node, value, {});
    return value;
  }

  #fault(kind: string): boolean {
    const { name } = this.options;
    return name !== undefined && this.node.world.fault(`${name}.${kind}`, this.node.name);
  }

  #crash(): Promise<never> {
    this.node.crash();
    return never();
  }

  #failure(): Error {
    const { error, name } = this.options;
    return error?.(this.method) ?? new Error(`${name}.${this.method} was made to fail`);
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value;
}

function isStream(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** The simulation as one of its machines sees it. */
interface SimulatedWorld {
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

const shownEvents = 25;

/** A failed run, with the seed that reproduces it and the last events. */
export class SimulationFailure extends Error {
  override readonly name = 'SimulationFailure';

  constructor(
    readonly seed: number,
    elapsedMs: number,
    lines: readonly string[],
    cause: unknown,
  ) {
    const last = lines.slice(-shownEvents);
    const report = [
      `seed ${seed} failed after ${formatDuration(Math.floor(elapsedMs))} of virtual time: ${messageOf(cause)}`,
      `the last ${last.length} events:`,
      ...last.map((line) => `  ${line}`),
      `to run this seed alone: MILLRACE_SEED=${seed}`,
    ];
    super(report.join('\n'), { cause });
  }
}
