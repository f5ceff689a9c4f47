import type { Clock } from '@millrace/kit/clock';
import type { Refusal } from '@millrace/kit/errors';
import { AdmittedShare, TurnProbe } from '@millrace/kit/load-shedding';
import type { Log } from '@millrace/kit/log';
import { TokenBucket } from '@millrace/kit/token-bucket';
import { rateExceeded, rateLimited } from './refusal.js';

export interface LoadOptions {
  clock: Clock;
  log: Log;
  /** Maximum concurrent requests. */
  maxInflight: number;
  /** 0: no shedding by delay. */
  targetMs: number;
}

/** Whether a request can be shed: submits can, requests that settle or manage tasks cannot. */
export type Urgency = 'new_work' | 'upkeep';

export type ShedCause = 'delay' | 'inflight' | 'bytes';

const intervalMs = 500;
// Operators of an overloaded server and handlers that settle tasks must get through.
const reserve = 64;
// A body takes several times its size in memory while it is parsed.
const maxBodyBytes = 256 * 2 ** 20;
const retryAfterMs = 1_000;

/**
 * Load shedding by the number of concurrent requests and by event loop delay. As in CoDel, only
 * the shortest event loop turn of an interval counts, so that a short burst is not shed. While it
 * is above the target, each interval halves the admitted share of new work; afterwards the share
 * grows back more slowly.
 */
export class Load {
  /** Called with the reason when a request is shed. */
  onShed: (cause: ShedCause) => void = () => undefined;
  readonly #options: LoadOptions;
  #inflight = 0;
  #bodyBytes = 0;
  readonly #share = new AdmittedShare(intervalMs);
  readonly #turns: TurnProbe;
  #isShedding = false;
  #minTurnMs = Infinity;
  #requests = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#turns = new TurnProbe(options.clock, (turnMs, now) => this.observe(turnMs, now));
  }

  get inflight(): number {
    return this.#inflight;
  }

  get share(): number {
    return this.#share.share;
  }

  /** Admits a request that has entered, or throws the refusal. */
  admit(urgency: Urgency): void {
    const { maxInflight, targetMs, clock } = this.#options;
    const most = urgency === 'new_work' ? maxInflight : maxInflight + reserve;
    if (this.#inflight > most) {
      throw this.#refusal('inflight', `${this.#inflight} requests are under way`);
    }
    if (this.#bodyBytes > maxBodyBytes) {
      throw this.#refusal('bytes', `requests under way have ${this.#bodyBytes} bytes`);
    }
    if (targetMs === 0 || urgency === 'upkeep') return;
    this.#turns.arm();
    this.#requests++;
    if (this.#share.resetIfIdle(clock.monotonic())) this.#begin();
    if (!this.#share.admits()) {
      throw this.#refusal('delay', `requests wait longer than ${targetMs} ms`);
    }
  }

  /** Registers a request with the size of its body. */
  enter(bodyBytes: number): void {
    this.#inflight++;
    this.#bodyBytes += bodyBytes;
  }

  /** The request was answered, or its client disconnected. */
  leave(bodyBytes: number): void {
    this.#inflight--;
    this.#bodyBytes -= bodyBytes;
  }

  /** Runs a request that mostly waits, without counting it as load. */
  async idle<Result>(run: () => Promise<Result>): Promise<Result> {
    this.#inflight--;
    try {
      return await run();
    } finally {
      // Also after a disconnect, which `leave` has counted.
      this.#inflight++;
    }
  }

  /** Records the length of an event loop turn that received requests. */
  observe(turnMs: number, now: number): void {
    this.#minTurnMs = Math.min(this.#minTurnMs, turnMs);
    const elapsedMs = this.#share.elapsedMs(now);
    if (elapsedMs < intervalMs) return;
    const { targetMs, maxInflight } = this.#options;
    // Number of waiting requests by Little's law. Few waiting requests never cause shedding.
    const waiting = Math.max(this.#inflight, (this.#requests / elapsedMs) * this.#minTurnMs);
    this.#share.endInterval(this.#minTurnMs > targetMs && waiting > maxInflight / 8, now);
    this.#begin();
  }

  /** Begins an interval. Logs the start and the end of shedding, not each request. */
  #begin(): void {
    this.#minTurnMs = Infinity;
    this.#requests = 0;
    const isShedding = this.share < 1;
    if (isShedding === this.#isShedding) return;
    this.#isShedding = isShedding;
    const { log, targetMs } = this.#options;
    if (isShedding) log.warn({ target_ms: targetMs }, 'shedding load: requests wait too long');
    else log.info({}, 'load shedding ended');
  }

  #refusal(cause: ShedCause, why: string): Refusal {
    this.onShed(cause);
    const detail = `The server sheds load (${why}); try again in a moment.`;
    return rateLimited({ name: 'load', detail, retryAfterMs });
  }
}

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
