import type { Clock } from '@millrace/kit/clock';

/** What is small beside what may be in flight: more places will be free in a moment. */
const smallShare = 4;
/** So many are worth a claim in any case. */
const enough = 50;
const restMs = 10;

/**
 * A claim costs the database about the same for one task and for fifty. While a queue has more than
 * enough to do, places that become free one by one are filled together.
 */
export class Pace {
  /** When the last claim of a queue ended that left some, by the steady clock. */
  readonly #fullAt = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  async wait({ queue, limit, maxInFlight }: Ask): Promise<void> {
    const fullAt = this.#fullAt.get(queue);
    if (fullAt === undefined || limit >= enough || limit * smallShare > maxInFlight) return;
    const leftMs = fullAt + restMs - this.clock.monotonic();
    if (leftMs > 0) await this.clock.sleep(leftMs);
  }

  claimed({ queue, limit }: Ask, count: number): void {
    if (count >= limit) this.#fullAt.set(queue, this.clock.monotonic());
    else this.#fullAt.delete(queue);
  }
}

interface Ask {
  queue: string;
  limit: number;
  maxInFlight: number;
}
