import type { Clock } from '@millrace/kit/clock';
import type { Refusal } from '@millrace/kit/errors';
import { rateExceeded } from './refusal.js';
import { TokenBucket } from '@millrace/kit/token-bucket';

export interface SubmitRequest {
  queue: string;
  principal: string;
  /** The queue's `limits.submit_per_second`; 0: any number. */
  queuePerSecond: number;
  wanted: number;
}

export interface SubmitAllowance {
  /** How many of the tasks may be stored. */
  granted: number;
  /** Refusal for the rest. */
  refusal: Refusal | undefined;
}

// Above this count, full buckets are dropped.
const maxBuckets = 10_000;

/** Submit rate limits: per queue, and per principal and queue. */
export class SubmitLimits {
  readonly #clock: Clock;
  readonly #principalPerSecond: number;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(clock: Clock, principalPerSecond: number) {
    this.#clock = clock;
    this.#principalPerSecond = principalPerSecond;
  }

  take({ queue, principal, queuePerSecond, wanted }: SubmitRequest): SubmitAllowance {
    if (queuePerSecond === 0 && this.#principalPerSecond === 0) {
      return { granted: wanted, refusal: undefined };
    }
    const now = this.#clock.monotonic();
    const whole = this.#bucket(queue, queuePerSecond, now);
    // Queue names have no space.
    const own = this.#bucket(`${queue} ${principal}`, this.#principalPerSecond, now);
    const byQueue = whole?.peek(wanted, now) ?? wanted;
    const byPrincipal = own?.peek(wanted, now) ?? wanted;
    const granted = Math.min(byQueue, byPrincipal);
    whole?.take(granted);
    own?.take(granted);
    if (granted === wanted) return { granted, refusal: undefined };
    return {
      granted,
      refusal:
        whole && byQueue <= byPrincipal
          ? overQueue(queue, whole, now)
          : overPrincipal(queue, own!, now),
    };
  }

  #bucket(key: string, perSecond: number, now: number): TokenBucket | undefined {
    if (perSecond === 0) return undefined;
    let bucket = this.#buckets.get(key);
    if (!bucket) {
      if (this.#buckets.size >= maxBuckets) this.#forgetFull(now);
      this.#buckets.set(key, (bucket = new TokenBucket(perSecond, now)));
    }
    bucket.setRate(perSecond, now);
    return bucket;
  }

  #forgetFull(now: number): void {
    for (const [key, bucket] of this.#buckets) if (bucket.isFull(now)) this.#buckets.delete(key);
  }
}

function overQueue(queue: string, bucket: TokenBucket, now: number): Refusal {
  const { perSecond } = bucket;
  const detail = `The queue ${queue} takes ${perSecond} tasks a second; send this again later.`;
  return rateExceeded('queue', detail, { perSecond, waitMs: bucket.waitMs(now) });
}

function overPrincipal(queue: string, bucket: TokenBucket, now: number): Refusal {
  const { perSecond } = bucket;
  const detail = `You may submit ${perSecond} tasks a second to ${queue}; send this again later.`;
  return rateExceeded('principal', detail, { perSecond, waitMs: bucket.waitMs(now) });
}
