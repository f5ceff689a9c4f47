import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';

export interface ReadinessOptions {
  clock: Clock;
  log: Log;
  /** Resolves when the storage answers. */
  probe: () => Promise<void>;
}

const keptMs = 1_000;
const probeTimeoutMs = 5_000;

/** Ready: not draining, and the storage answered a moment ago. */
export class Readiness {
  readonly #options: ReadinessOptions;
  #finding: Promise<string | undefined> | undefined;
  #lookedAt = -Infinity;
  #isDraining = false;
  #lastTrouble: string | undefined;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  /** From now on nothing new should be sent here. */
  beginDrain(): void {
    this.#isDraining = true;
  }

  /** What is wrong, in a sentence; undefined when the server is ready. */
  async look(): Promise<string | undefined> {
    if (this.#isDraining) return 'The server is shutting down; ask another one.';
    const now = this.#options.clock.monotonic();
    if (!this.#finding || now - this.#lookedAt >= keptMs) {
      this.#lookedAt = now;
      this.#finding = this.#probe();
    }
    return this.#finding;
  }

  async #probe(): Promise<string | undefined> {
    const { clock, log, probe } = this.#options;
    const timeUp = new AbortController();
    const trouble = await Promise.race([
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
    if (trouble !== this.#lastTrouble) {
      this.#lastTrouble = trouble;
      if (trouble === undefined) log.info({}, 'storage answers again');
      else log.error({ reason: trouble }, 'storage does not answer');
    }
    // What a database says of itself is for the log; whoever asks here has no token.
    return trouble === undefined ? undefined : 'The task store does not answer.';
  }
}
