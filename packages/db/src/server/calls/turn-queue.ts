import type { Clock } from '@millrace/kit/clock';

// Other work, such as a health check, waits at most this long plus one item.
const maxTurnMs = 10;

interface TurnQueueOptions {
  readonly clock: Clock;
  /** Called once per turn with the queue delay of the oldest item. */
  onDelay(delayMs: number): void;
  /** Called once per turn, after its items. */
  onEnd?(): void;
}

/**
 * Collects items that arrive within one turn of the event loop and runs them together at its end.
 * Batching keeps code and data in the CPU caches: calls that are interleaved with socket work cost
 * more than twice as much.
 */
export class TurnQueue<Item> {
  #waiting: Item[] = [];
  #pushedAt: number[] = [];
  #isScheduled = false;

  /**
   * `run` must not throw, because other items wait behind it. `options` limits the time per turn.
   */
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
      this.#schedule();
      break;
    }
    this.options.onEnd?.();
  };
}

const maxTurnBytes = 4 * 1024 * 1024;

/** Counts the bytes that were encoded within one turn of the event loop. */
export class TurnBytes {
  #bytes = 0;

  /** The byte budget of this turn is used up; the rest should wait for the next turn. */
  get isSpent(): boolean {
    return this.#bytes > maxTurnBytes;
  }

  add(bytes: number): void {
    if (this.#bytes === 0) setImmediate(this.#reset);
    this.#bytes += bytes;
  }

  readonly #reset = (): void => void (this.#bytes = 0);
}
