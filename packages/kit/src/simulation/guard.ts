import type { Scope } from './scope.js';

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
  /** Every answer takes a virtual time between these. */
  latencyMs?: readonly [low: number, high: number];
  /** The port does real work: virtual time waits for its answers. */
  io?: boolean;
}

/**
 * Wraps a port, such as a store or the network, for one node. Once the node has crashed, its calls
 * no longer reach the port and no answer reaches the node. Answers that are streams are wrapped
 * as well, but never count as real work: a change feed may wait for virtual time.
 */
export function guard<T extends object>(scope: Scope, port: T, options: GuardOptions): T {
  return new Proxy(port, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        const call = () => Reflect.apply(member, target, args) as unknown;
        return new GuardedCall(scope, String(property), options).run(call);
      };
    },
  });
}

class GuardedCall {
  constructor(
    private readonly scope: Scope,
    private readonly method: string,
    private readonly options: GuardOptions,
  ) {}

  run(call: () => unknown): unknown {
    const { scope } = this;
    scope.world.activity.count++;
    if (!scope.alive) return never();
    if (this.#fault('crash_before')) return this.#crash();
    if (this.#fault('fail_before')) return Promise.reject(this.#failure());
    const answer = call();
    if (isThenable(answer)) return this.#answer(Promise.resolve(answer));
    if (isStream(answer)) return guard(scope, answer, {});
    return answer;
  }

  async #answer(answer: Promise<unknown>): Promise<unknown> {
    const { scope, options } = this;
    let value = await (options.io
      ? scope.pending(answer, `${options.name ?? 'port'}.${this.method}`)
      : scope.deliver(answer));
    if (this.#fault('crash_after')) return this.#crash();
    if (options.latencyMs) await scope.clock.sleep(scope.world.between(options.latencyMs));
    if (this.#fault('fail_after')) throw this.#failure();
    if (isStream(value)) value = guard(scope, value, {});
    return value;
  }

  #fault(kind: string): boolean {
    const { name } = this.options;
    return name !== undefined && this.scope.world.fault(`${name}.${kind}`, this.scope.name);
  }

  #crash(): Promise<never> {
    this.scope.crash();
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
