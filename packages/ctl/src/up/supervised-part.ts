import type { Clock } from '@millrace/kit/clock';
import { messageOf, Refusal } from '@millrace/kit/errors';
import { humanDuration } from '@millrace/kit/units';
import { exitText, type Child, type Exit } from './child.js';
import type { Listener, Part } from './parts.js';

export interface KeepOptions {
  readonly clock: Clock;
  /** Starts the process; `before` is its last address, which it must use again. */
  launch(before: readonly Listener[]): Child;
  onEvent(event: PartEvent): void;
}

/** Events of a server after it has started. */
export type PartEvent =
  | { readonly kind: 'died'; readonly part: Part; readonly exit: Exit; readonly againMs: number }
  | { readonly kind: 'back'; readonly part: Part; readonly listeners: readonly Listener[] };

/** Maximum number of early exits in a row. */
export const maxQuickExits = 5;
/** An exit after this time is not an early exit. */
export const steadyMs = 20_000;
const firstPauseMs = 250;
const maxPauseMs = 10_000;
/** Longer than the drain timeout of the servers, which is 30 seconds. */
export const drainMs = 60_000;

/** A server that is restarted when it exits, until it is stopped or exits too often. */
export class SupervisedPart {
  /** Settles when restarting is given up; never when it is stopped. */
  readonly givenUp: Promise<Error>;
  listeners: readonly Listener[] = [];
  #child: Child | undefined;
  #isStopping = false;
  /** State of the process; a restart may be pending. */
  #hasEnded = false;
  readonly #stopped = new AbortController();
  #watch: Promise<void> = Promise.resolve();
  #giveUp: (error: Error) => void = () => undefined;

  constructor(
    readonly part: Part,
    private readonly options: KeepOptions,
  ) {
    this.givenUp = new Promise((resolve) => (this.#giveUp = resolve));
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** A server that cannot start is not retried: the reason is thrown. */
  async start(): Promise<void> {
    const { clock } = this.options;
    const startedAt = clock.monotonic();
    const child = this.#launch();
    try {
      this.listeners = await child.ready;
    } catch (error) {
      throw new Refusal('PART_FAILED', `the ${this.part.title} did not start: ${wordsOf(error)}`, {
        cause: error,
      });
    }
    this.#watch = this.#keep(child, startedAt);
  }

  /** Stops it gracefully; returns whether it exited cleanly. Safe to call at any time. */
  async stop(): Promise<Error | undefined> {
    this.#isStopping = true;
    this.#stopped.abort();
    const child = this.#child;
    // An earlier exit has been reported already.
    if (!child || this.#hasEnded) return undefined;
    child.kill('SIGTERM');
    const deadline = this.options.clock.after(drainMs, () => child.kill('SIGKILL'));
    const exit = await child.ended;
    deadline.cancel();
    await this.#watch;
    if (exit.code === 0 || (exit.code === null && exit.signal === 'SIGTERM')) return undefined;
    const what = this.listeners.length === 0 ? 'did not start' : 'did not stop cleanly';
    return new Error(`the ${this.part.title} ${what}: ${exitText(exit)}`);
  }

  /** Kills it without a drain. */
  kill(): void {
    this.#isStopping = true;
    this.#stopped.abort();
    this.#child?.kill('SIGKILL');
  }

  #launch(): Child {
    const child = this.options.launch(this.listeners);
    this.#child = child;
    this.#hasEnded = false;
    void child.ended.then(() => (this.#hasEnded = true));
    return child;
  }

  async #keep(first: Child, firstStartedAt: number): Promise<void> {
    const { clock, onEvent } = this.options;
    let [child, startedAt] = [first, firstStartedAt];
    for (let quickDeaths = 0; ;) {
      const exit = await child.ended;
      if (this.#isStopping) return;
      const isSteady = clock.monotonic() - startedAt >= steadyMs;
      // A clean exit is a requested one, as by `ctl restart`.
      const isClean = exit.code === 0;
      quickDeaths = isSteady || isClean ? 1 : quickDeaths + 1;
      if (quickDeaths >= maxQuickExits) {
        const when = `${quickDeaths} times in a row within ${humanDuration(steadyMs)} of its start`;
        this.#giveUp(new Error(`the ${this.part.title} exited ${when}: ${exitText(exit)}`));
        return;
      }
      const againMs = Math.min(maxPauseMs, firstPauseMs * 4 ** (quickDeaths - 1));
      onEvent({ kind: 'died', part: this.part, exit, againMs });
      if (!(await this.#pause(againMs))) return;
      startedAt = clock.monotonic();
      child = this.#launch();
      void child.ready.then(
        (listeners) => {
          this.listeners = listeners;
          onEvent({ kind: 'back', part: this.part, listeners });
        },
        // Its exit reports the reason too.
        () => undefined,
      );
    }
  }

  /** False if it is stopped meanwhile. */
  async #pause(delayMs: number): Promise<boolean> {
    try {
      await this.options.clock.sleep(delayMs, this.#stopped.signal);
    } catch (error) {
      if (this.#isStopping) return false;
      throw error;
    }
    return !this.#isStopping;
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Refusal ? error.detail : messageOf(error);
}
