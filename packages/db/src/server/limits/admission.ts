import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { DbMethod } from '@millrace/contract/db';
import { dbMethods } from '@millrace/contract/db';
import { refuse } from '../../engine/refusal.js';
import { LoopDelay } from './loop-delay.js';
import { Shedder } from './shedder.js';

export interface AdmissionOptions {
  clock: Clock;
  log: Log;
  maxInflight: number;
  maxWatches: number;
  /** 0: no shedding by delay. */
  shedTargetMs: number;
}

export type ShedCause = 'queue_delay' | 'inflight' | 'watches';

const idleAfterMs = 1_000;
const retryAfterMs = 250;
const retryWatchAfterMs = 1_000;

/** Takes calls in, or sheds them. */
export class Admission {
  /** Told why a call was shed. */
  onShed: (cause: ShedCause) => void = () => undefined;
  readonly #shedder: Shedder;
  readonly #loop: LoopDelay;
  #inflight = 0;
  #watches = 0;
  #lastCallAt = 0;
  #isShedding = false;
  /** How long work has waited lately, for the metrics. */
  delayMs = 0;

  constructor(private readonly options: AdmissionOptions) {
    this.#shedder = new Shedder(options.shedTargetMs, options.maxInflight / 8);
    this.#loop = new LoopDelay(options.clock, (delayMs) => this.#looked(delayMs));
  }

  get inflight(): number {
    return this.#inflight;
  }

  get watches(): number {
    return this.#watches;
  }

  get share(): number {
    return this.#shedder.share;
  }

  /** Returns what to call when the call is over. Refuses OVERLOADED or WATCH_LIMIT. */
  enter(rpc: DbMethod): () => void {
    // Whoever looks after an overloaded server must get through.
    if (dbMethods[rpc].access === 'admin') return leave;
    if (rpc === 'Watch') return this.#enterWatch();
    const { maxInflight, shedTargetMs, clock } = this.options;
    this.#lastCallAt = clock.monotonic();
    if (shedTargetMs > 0) this.#loop.start();
    if (this.#inflight >= maxInflight) {
      throw this.#overloaded('inflight', `${maxInflight} calls are under way already`);
    }
    if (!this.#shedder.admits()) {
      throw this.#overloaded('queue_delay', `calls wait longer than ${shedTargetMs} ms`);
    }
    this.#inflight++;
    return () => void this.#inflight--;
  }

  /** A write waited this long for its turn. */
  waited(delayMs: number): void {
    if (this.options.shedTargetMs === 0) return;
    this.#shedder.observe('writer', delayMs, this.options.clock.monotonic(), this.#inflight);
  }

  stop(): void {
    this.#loop.stop();
  }

  #enterWatch(): () => void {
    const { maxWatches } = this.options;
    if (this.#watches >= maxWatches) {
      this.onShed('watches');
      throw refuse(
        'WATCH_LIMIT',
        `The server has ${maxWatches} open watches, as many as it allows; try again later.`,
        { limit: String(maxWatches) },
        { retryAfterMs: retryWatchAfterMs },
      );
    }
    this.#watches++;
    return () => void this.#watches--;
  }

  #looked(delayMs: number): boolean {
    const now = this.options.clock.monotonic();
    this.delayMs = delayMs;
    this.#shedder.observe('loop', delayMs, now, this.#inflight);
    this.#tell();
    return this.#inflight > 0 || now - this.#lastCallAt < idleAfterMs || this.share < 1;
  }

  /** Once when it begins and once when it is over: a line for each call would be more load. */
  #tell(): void {
    const isShedding = this.share < 1;
    if (isShedding === this.#isShedding) return;
    this.#isShedding = isShedding;
    const { log, shedTargetMs } = this.options;
    if (isShedding) log.warn({ target_ms: shedTargetMs }, 'calls wait too long: shedding load');
    else log.info({}, 'no longer shedding load');
  }

  #overloaded(cause: ShedCause, why: string): Error {
    this.onShed(cause);
    const text = `The server sheds load (${why}); try again in a moment.`;
    return refuse('OVERLOADED', text, undefined, { retryAfterMs });
  }
}

function leave(): void {}
