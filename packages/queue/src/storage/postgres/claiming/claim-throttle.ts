import type { Clock } from '@millrace/kit/clock';
import type { ClaimRequest } from '../../port/task-store.js';

/** A claim is small if it fills less than this part of what may be in flight. */
const smallPart = 4;
/** A claim of this many tasks never waits. */
const largeClaim = 50;
const delayMs = 10;

/**
 * Delays small claims of a busy queue, so that slots that become free one by one are filled by one
 * claim: it costs the database about the same for one task and for fifty.
 */
export class ClaimThrottle {
  /** Monotonic time of the last full claim of each queue. */
  readonly #fullAt = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  async wait({ queue, limit, maxInFlight }: Request): Promise<void> {
    const fullAt = this.#fullAt.get(queue);
    if (fullAt === undefined || limit >= largeClaim || limit * smallPart > maxInFlight) return;
    const leftMs = fullAt + delayMs - this.clock.monotonic();
    if (leftMs > 0) await this.clock.sleep(leftMs);
  }

  claimed({ queue, limit }: Request, count: number): void {
    if (count >= limit) this.#fullAt.set(queue, this.clock.monotonic());
    else this.#fullAt.delete(queue);
  }
}

type Request = Pick<ClaimRequest, 'queue' | 'limit' | 'maxInFlight'>;
