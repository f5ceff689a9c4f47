import type { Clock } from '@millrace/kit/clock';

// What else is due, such as a health check, waits no longer than this and one piece of work.
const maxTurnMs = 10;

export interface TurnQueueOptions {
  readonly clock: Clock;
  /** Told, for each turn, how long the oldest piece has waited. */
  onDelay(delayMs: number): void;
}

/**
 * Work of one kind that arrives piece by piece in a turn of the event loop and is done in one go
 * at its end. One piece alone waits for nothing but the others that are already there. Among many,
 * each finds its code and data still in the processor's caches: taken one by one between the
 * network's own work, calls cost more than twice as much.
 */
export class TurnQueue<Item> {
  #waiting: Item[] = [];
  #pushedAt: number[] = [];
  #isScheduled = false;

  /** `run` must not throw: the others wait behind it. With `options` a turn has a limit. */
  constructor(
    private readonly run: (item: Item) => void,
    private readonly options?: TurnQueueOptions,
  ) {}

  push(item: Item): void {
    this.#waiting.push(item);
    if (this.options) this.#pushedAt.push(this.options.clock.monotonic());
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#runTurn);
  }

  readonly #runTurn = (): void => {
    this.#isScheduled = false;
    const items = this.#waiting;
    const pushedAt = this.#pushedAt;
    this.#waiting = [];
    this.#pushedAt = [];
    if (!this.options) return items.forEach((item) => this.run(item));
    const { clock, onDelay } = this.options;
    const start = clock.monotonic();
    onDelay(start - pushedAt[0]!);
    for (let n = 0; n < items.length; n++) {
      this.run(items[n]!);
      if (n + 1 === items.length || clock.monotonic() - start < maxTurnMs) continue;
      this.#waiting = [...items.slice(n + 1), ...this.#waiting];
      this.#pushedAt = [...pushedAt.slice(n + 1), ...this.#pushedAt];
      return this.#schedule();
    }
  };
}
