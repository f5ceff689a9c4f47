import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';

export interface LoopOptions {
  /** For the log. */
  name: string;
  clock: Clock;
  log: Log;
  /** Does what is due, and returns after how long to run again at the latest. */
  run: (signal: AbortSignal) => Promise<number>;
}

const retryMs = 1_000;

/** Runs a job again and again, one at a time, and sooner when it is woken. */
export class Loop {
  readonly #stopping = new AbortController();
  #wake: (() => void) | undefined;
  #isWoken = false;
  #isFailing = false;
  #running: Promise<void> | undefined;

  constructor(private readonly options: LoopOptions) {}

  start(): void {
    this.#running ??= this.#loop();
  }

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  /** Resolves when the current run has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake?.();
    await this.#running;
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#isWoken = false;
      const delayMs = await this.#run(signal);
      if (!this.#isWoken && !signal.aborted) await this.#rest(delayMs);
    }
  }

  async #run(signal: AbortSignal): Promise<number> {
    const { name, log, run } = this.options;
    try {
      const delayMs = await run(signal);
      if (this.#isFailing) log.info({ loop: name }, 'background work succeeded again');
      this.#isFailing = false;
      return delayMs;
    } catch (error) {
      if (!this.#isFailing) {
        const fields = { loop: name, err: error, reason: messageOf(error) };
        log.warn(fields, 'background work failed, retrying');
      }
      this.#isFailing = true;
      return retryMs;
    }
  }

  #rest(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.options.clock.after(delayMs, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
