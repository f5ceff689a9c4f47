import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';

export interface ReadinessOptions {
  clock: Clock;
  log: Log;
  /** Resolves when the storage answers. */
  probe: () => Promise<void>;
}

const cacheMs = 1_000;
const probeTimeoutMs = 5_000;

/** Readiness: not draining, and the storage responded within the last second. */
export class Readiness {
  readonly #options: ReadinessOptions;
  #finding: Promise<string | undefined> | undefined;
  #checkedAt = -Infinity;
  readonly #draining = new AbortController();
  #lastProblem: string | undefined;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  /** Starts draining: load balancers should send no more requests. */
  beginDrain(): void {
    this.#draining.abort();
  }

  /** Aborted when the server starts to drain. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /** Why the server is not ready, as a sentence; undefined if it is. */
  async check(): Promise<string | undefined> {
    if (this.draining.aborted) return 'The server is shutting down; use another one.';
    const now = this.#options.clock.monotonic();
    if (!this.#finding || now - this.#checkedAt >= cacheMs) {
      this.#checkedAt = now;
      this.#finding = this.#probe();
    }
    return this.#finding;
  }

  async #probe(): Promise<string | undefined> {
    const { clock, log, probe } = this.#options;
    const timeUp = new AbortController();
    const problem = await Promise.race([
      probe().then(
        () => undefined,
        (error: unknown) => messageOf(error),
      ),
      clock.sleep(probeTimeoutMs, timeUp.signal).then(
        () => `no answer within ${probeTimeoutMs} ms`,
        () => undefined,
      ),
    ]);
    timeUp.abort();
    if (problem !== this.#lastProblem) {
      this.#lastProblem = problem;
      if (problem === undefined) log.info({}, 'storage responds again');
      else log.error({ reason: problem }, 'storage does not respond');
    }
    // Error messages of the database go to the log only: this endpoint needs no token.
    return problem === undefined ? undefined : 'The task store does not respond.';
  }
}
