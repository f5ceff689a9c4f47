import type { Clock } from '../base/clock.js';
import type { Activity } from './rest.js';

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
export interface GuardedNode {
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
export function guard<T extends object>(node: GuardedNode, port: T, options: GuardOptions): T {
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
