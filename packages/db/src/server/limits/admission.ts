import type { TurnKind } from '@millrace/engine/core/slice';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { AdmittedShare, TurnProbe } from '@millrace/kit/load-shedding';
import type { PeerMemory } from '@millrace/kit/peer-memory';
import { type DbMethod, dbMethods } from '@millrace/contract/db';
import { refuse } from '@millrace/engine/value/documents';

/** Where work waits: for the event loop, for the writer, or for the turns that queries share. */
type Queue = 'loop' | 'writer' | TurnKind;

/**
 * Decides how many calls to admit from the queue delay, like CoDel does for packets: a delay that
 * drops below the target now and then is a burst, so only a delay that stays above the target for a
 * whole interval counts. While it stays, the admitted share shrinks every interval; below the
 * target it grows again, more slowly.
 */
export class Shedder {
  readonly #share: AdmittedShare;
  /** Start of the current period above the target, per queue. */
  readonly #aboveSince = new Map<Queue, number>();

  constructor(
    private readonly targetMs: number,
    private readonly intervalMs: number,
  ) {
    this.#share = new AdmittedShare(intervalMs);
  }

  /** Admitted share of calls, from 0 to 1. */
  get share(): number {
    return this.#share.share;
  }

  /** Records the queue delay of one item. */
  observe(queue: Queue, delayMs: number, now: number): void {
    if (delayMs <= this.targetMs) this.#aboveSince.delete(queue);
    else if (!this.#aboveSince.has(queue)) this.#aboveSince.set(queue, now);
    if (this.#share.elapsedMs(now) < this.intervalMs) return;
    this.#share.endInterval(this.#isStanding(now), now);
  }

  /** Whether one more call is admitted. */
  admits(now: number): boolean {
    if (this.#share.resetIfIdle(now)) this.#aboveSince.clear();
    return this.#share.admits();
  }

  #isStanding(now: number): boolean {
    for (const since of this.#aboveSince.values()) {
      if (now - since >= this.intervalMs) return true;
    }
    return false;
  }
}

interface AdmissionOptions {
  clock: Clock;
  log: Log;
  maxInflight: number;
  maxWatches: number;
  /** 0 disables shedding by delay. */
  shedTargetMs: number;
  shedIntervalMs: number;
  memory: PeerMemory;
}

type ShedCause = 'queue_delay' | 'inflight' | 'memory' | 'watches';

const retryAfterMs = 250;
const retryWatchAfterMs = 1_000;

/** Admission control: accepts calls or sheds them. */
export class Admission {
  /** Called with the cause of each shed call. */
  onShed: (cause: ShedCause) => void = () => undefined;
  readonly #shedder: Shedder;
  /** Queries alone wait for the turns that they share, so they alone are shed for that. */
  readonly #queryShedder: Shedder;
  readonly #turns: TurnProbe;
  #inflight = 0;
  #watches = 0;
  #isShedding = false;
  // Shared by all calls to avoid allocating a closure for each.
  readonly #leaveCall = (): void => void this.#inflight--;
  readonly #leaveWatch = (): void => void this.#watches--;
  /** Duration of the last event loop turn that handled a call. */
  turnMs = 0;

  constructor(private readonly options: AdmissionOptions) {
    const { shedTargetMs, shedIntervalMs } = options;
    this.#shedder = new Shedder(shedTargetMs, shedIntervalMs);
    this.#queryShedder = new Shedder(shedTargetMs, shedIntervalMs);
    this.#turns = new TurnProbe(options.clock, (delayMs) => this.#observe('loop', delayMs));
  }

  get inflight(): number {
    return this.#inflight;
  }

  get watches(): number {
    return this.#watches;
  }

  /** The smallest admitted share of calls. */
  get share(): number {
    return Math.min(this.#shedder.share, this.#queryShedder.share);
  }

  /** Returns the function to call once when the call ends. Refuses OVERLOADED or WATCH_LIMIT. */
  enter(rpc: DbMethod, isFollower = false): () => void {
    // Admin calls and followers are never shed: operators must reach an overloaded server.
    if (isFollower || dbMethods[rpc].access === 'admin') return leave;
    if (rpc === 'Watch') return this.#enterWatch();
    const { maxInflight, shedTargetMs, clock, memory } = this.options;
    if (shedTargetMs > 0) this.#turns.arm();
    if (this.#inflight >= maxInflight) {
      throw this.#overloaded('inflight', `${maxInflight} calls are in flight`);
    }
    if (memory.isOverLimit) {
      throw this.#overloaded('memory', 'the memory limit for connections is reached');
    }
    const now = clock.monotonic();
    if (!this.#shedder.admits(now) || (isQuery(rpc) && !this.#queryShedder.admits(now))) {
      throw this.#overloaded('queue_delay', `the queue delay is above ${shedTargetMs} ms`);
    }
    this.#inflight++;
    return this.#leaveCall;
  }

  /** Records how long a call was queued before it started. */
  queued(delayMs: number): void {
    if (this.options.shedTargetMs > 0) this.#observe('loop', delayMs);
  }

  /** Records how long a write waited for the writer. */
  waited(delayMs: number): void {
    if (this.options.shedTargetMs > 0) this.#observe('writer', delayMs);
  }

  /** Records how long a query waited for its next turn. */
  queryWaited(kind: TurnKind, delayMs: number): void {
    if (this.options.shedTargetMs > 0) this.#observe(kind, delayMs);
  }

  #enterWatch(): () => void {
    const { maxWatches } = this.options;
    if (this.#watches >= maxWatches) {
      this.onShed('watches');
      throw refuse(
        'WATCH_LIMIT',
        `The server has the maximum of ${maxWatches} open watches. Retry later.`,
        { limit: String(maxWatches) },
        { retryAfterMs: retryWatchAfterMs },
      );
    }
    this.#watches++;
    return this.#leaveWatch;
  }

  #observe(queue: Queue, delayMs: number): void {
    if (queue === 'loop') this.turnMs = delayMs;
    const shedder = queue === 'first' || queue === 'next' ? this.#queryShedder : this.#shedder;
    shedder.observe(queue, delayMs, this.options.clock.monotonic());
    this.#logTransition();
  }

  /** Logs only the start and the end of shedding; a line per call would add load. */
  #logTransition(): void {
    const isShedding = this.share < 1;
    if (isShedding === this.#isShedding) return;
    this.#isShedding = isShedding;
    const { log, shedTargetMs } = this.options;
    if (isShedding) log.warn({ target_ms: shedTargetMs }, 'load shedding started');
    else log.info({}, 'load shedding stopped');
  }

  #overloaded(cause: ShedCause, why: string): Error {
    this.onShed(cause);
    const text = `The server is overloaded (${why}). Retry later.`;
    return refuse('OVERLOADED', text, undefined, { retryAfterMs });
  }
}

const queries: ReadonlySet<DbMethod> = new Set([
  'Find',
  'Aggregate',
  'Distinct',
  'UpdateMany',
  'DeleteMany',
]);

function isQuery(rpc: DbMethod): boolean {
  return queries.has(rpc);
}

function leave(): void {}
