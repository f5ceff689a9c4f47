import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import type { DbMethod } from '@millrace/contract/db';
import { dbMethods } from '@millrace/contract/db';
import { refuse } from '../../engine/refusal.js';
import { Shedder, type Queue } from './shedder.js';
import { TurnProbe } from './turn-probe.js';

export interface AdmissionOptions {
  clock: Clock;
  log: Log;
  maxInflight: number;
  maxWatches: number;
  /** 0: no shedding by delay. */
  shedTargetMs: number;
  shedIntervalMs: number;
  memory: PeerMemory;
}

export type ShedCause = 'queue_delay' | 'inflight' | 'memory' | 'watches';

const retryAfterMs = 250;
const retryWatchAfterMs = 1_000;

/** Takes calls in, or sheds them. */
export class Admission {
  /** Told why a call was shed. */
  onShed: (cause: ShedCause) => void = () => undefined;
  readonly #shedder: Shedder;
  readonly #turns: TurnProbe;
  #inflight = 0;
  #watches = 0;
  #isShedding = false;
  // One for all calls: a function for each would be one more thing to clear away.
  readonly #leaveCall = (): void => void this.#inflight--;
  readonly #leaveWatch = (): void => void this.#watches--;
  /** How long the last turn of the event loop took that had a call. */
  turnMs = 0;

  constructor(private readonly options: AdmissionOptions) {
    const { shedTargetMs, shedIntervalMs, maxInflight } = options;
    this.#shedder = new Shedder(shedTargetMs, shedIntervalMs, maxInflight / 8);
    this.#turns = new TurnProbe(options.clock, (delayMs) => this.#observe('loop', delayMs));
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

  /** Returns what to call once when the call is over. Refuses OVERLOADED or WATCH_LIMIT. */
  enter(rpc: DbMethod, isFollower = false): () => void {
    // Whoever looks after an overloaded server must get through, and its followers keep up.
    if (isFollower || dbMethods[rpc].access === 'admin') return leave;
    if (rpc === 'Watch') return this.#enterWatch();
    const { maxInflight, shedTargetMs, clock, memory } = this.options;
    if (shedTargetMs > 0) this.#turns.arm();
    if (this.#inflight >= maxInflight) {
      throw this.#overloaded('inflight', `${maxInflight} calls are under way already`);
    }
    if (memory.isOverLimit) {
      throw this.#overloaded('memory', 'it holds as much for its peers as it may');
    }
    if (!this.#shedder.admits(clock.monotonic())) {
      throw this.#overloaded('queue_delay', `calls wait longer than ${shedTargetMs} ms`);
    }
    this.#inflight++;
    return this.#leaveCall;
  }

  /** A call waited this long before it was begun. */
  queued(delayMs: number): void {
    if (this.options.shedTargetMs > 0) this.#observe('loop', delayMs);
  }

  /** A write waited this long for its turn. */
  waited(delayMs: number): void {
    if (this.options.shedTargetMs > 0) this.#observe('writer', delayMs);
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
    return this.#leaveWatch;
  }

  #observe(queue: Queue, delayMs: number): void {
    if (queue === 'loop') this.turnMs = delayMs;
    this.#shedder.observe(queue, delayMs, this.options.clock.monotonic(), this.#inflight);
    this.#tell();
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
