import type { Clock } from '@millrace/kit/clock';
import type { Refusal } from '@millrace/kit/errors';
import { AdmittedShare, TurnProbe } from '@millrace/kit/load-shedding';
import type { Log } from '@millrace/kit/log';
import { rateLimited } from './refusal.js';

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
