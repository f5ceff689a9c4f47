import type { Clock } from '@millrace/kit/clock';
import type { Refusal } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { rateLimited } from '../refusal.js';

export interface LoadOptions {
  clock: Clock;
  log: Log;
  /** Requests under way at once. */
  maxInflight: number;
  /** 0: no shedding by delay. */
  targetMs: number;
}

/** Whether a request may be put off: work that is new, in difference to care for what is there. */
export type Urgency = 'new_work' | 'upkeep';

export type ShedCause = 'delay' | 'inflight' | 'bytes';

const intervalMs = 500;
const leastShare = 0.05;
// Whoever looks after an overloaded server, or ends work that runs, must get through.
const reserve = 64;
// Bodies are held in memory several times over while they are parsed.
const mostBodyBytes = 256 * 2 ** 20;
const retryAfterMs = 1_000;

/**
 * Sheds load: beyond so many requests under way, and while turns of the event loop that take
 * requests in stay long. As CoDel does for packets, only the shortest turn of an interval counts,
 * since a burst passes by itself; while that is too long, each interval halves the share of new
 * work that is taken in, and afterwards the share grows again, more slowly.
 */
export class Load {
  /** Told why a request was shed. */
  onShed: (cause: ShedCause) => void = () => undefined;
  readonly #options: LoadOptions;
  #inflight = 0;
  #bodyBytes = 0;
  #share = 1;
  #credit = 0;
  #intervalStart = 0;
  #shortestMs = Infinity;
  #requests = 0;
  #isProbing = false;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  get inflight(): number {
    return this.#inflight;
  }

  get share(): number {
    return this.#share;
  }

  /** May this request, which has entered, be served? Throws the refusal. */
  admit(urgency: Urgency): void {
    const { maxInflight, targetMs, clock } = this.#options;
    const most = urgency === 'new_work' ? maxInflight : maxInflight + reserve;
    if (this.#inflight > most) {
      throw this.#refusal('inflight', `${this.#inflight} requests are under way`);
    }
    if (this.#bodyBytes > mostBodyBytes) {
      throw this.#refusal('bytes', `requests under way have ${this.#bodyBytes} bytes`);
    }
    if (targetMs === 0 || urgency === 'upkeep') return;
    this.#probe();
    this.#requests++;
    if (!this.#takesOneMore(clock.monotonic())) {
      throw this.#refusal('delay', `requests wait longer than ${targetMs} ms`);
    }
  }

  /** A request has come, with a body of so many bytes. */
  enter(bodyBytes: number): void {
    this.#inflight++;
    this.#bodyBytes += bodyBytes;
  }

  /** It is answered, or its caller has left. */
  leave(bodyBytes: number): void {
    this.#inflight--;
    this.#bodyBytes -= bodyBytes;
  }

  /** A turn of the event loop that took in requests lasted this long. */
  observe(turnMs: number, now: number): void {
    this.#shortestMs = Math.min(this.#shortestMs, turnMs);
    const elapsedMs = now - this.#intervalStart;
    if (elapsedMs < intervalMs) return;
    const { targetMs, maxInflight } = this.#options;
    // As many wait as come in while one waits (Little's law). So few are never the trouble.
    const waiting = Math.max(this.#inflight, (this.#requests / elapsedMs) * this.#shortestMs);
    const isTooMuch = this.#shortestMs > targetMs && waiting > maxInflight / 8;
    this.#setShare(isTooMuch ? this.#share / 2 : this.#share + 0.1);
    this.#begin(now);
  }

  #takesOneMore(now: number): boolean {
    // Nobody came for a while, so nobody waits.
    if (now - this.#intervalStart > 4 * intervalMs) {
      this.#setShare(1);
      this.#begin(now);
    }
    if (this.#share === 1) return true;
    this.#credit += this.#share;
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }

  #begin(now: number): void {
    this.#intervalStart = now;
    this.#shortestMs = Infinity;
    this.#requests = 0;
  }

  /** Says so once when it begins and once when it is over: a line per request is more load. */
  #setShare(share: number): void {
    const wasShedding = this.#share < 1;
    this.#share = Math.min(1, Math.max(leastShare, share));
    const isShedding = this.#share < 1;
    if (isShedding === wasShedding) return;
    const { log, targetMs } = this.#options;
    if (isShedding) log.warn({ target_ms: targetMs }, 'requests wait too long: shedding load');
    else log.info({}, 'no longer shedding load');
  }

  #probe(): void {
    if (this.#isProbing) return;
    this.#isProbing = true;
    const { clock } = this.#options;
    const since = clock.monotonic();
    setImmediate(() => {
      this.#isProbing = false;
      const now = clock.monotonic();
      this.observe(now - since, now);
    });
  }

  #refusal(cause: ShedCause, why: string): Refusal {
    this.onShed(cause);
    const detail = `The server sheds load (${why}); try again in a moment.`;
    return rateLimited({ name: 'load', detail, retryAfterMs });
  }
}
