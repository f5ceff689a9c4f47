import type { Timer } from '@millrace/kit/clock';
import type { Core } from '../core/core.js';
import { durableSnapshot } from '../core/durable-snapshot.js';
import { Slice } from '../core/slice.js';
import { type CommitLog, LogReader, type ReaderOptions } from './log-reader.js';
import { initialBatches } from './initial.js';
import type { WatchMessage } from './message.js';

/** A watch with validated options. */
interface CheckedWatch<Shown> extends ReaderOptions<Shown> {
  includeInitial: boolean;
  heartbeatMs: number;
  signal: AbortSignal | undefined;
  /** Wakes the watch when there may be new commits. */
  fanOut: FanOut;
}

/** Receives messages pushed to it. */
export interface WatchSink<Shown> {
  /** False: it accepts nothing now, and the caller of `next` gets the messages instead. */
  hasRoom(): boolean;
  /** Messages of changes. Watches with one share key get the same array: do not modify it. */
  take(messages: readonly WatchMessage<Shown>[]): void;
}

/**
 * Follows the change log from a position. There is no buffer that could overflow: the log is read
 * when the consumer asks for more, and at its end the watch sleeps until the next commit is on
 * disk. It starts at the position of the log when it was created, not when it is first read.
 */
export class Watch<Shown> implements AsyncIterableIterator<WatchMessage<Shown>> {
  readonly #messages: AsyncGenerator<WatchMessage<Shown>, void, void>;
  readonly #slice: Slice;
  readonly #reader: LogReader<Shown>;
  #lastSentAt: number;
  #over = false;
  #failure: Error | undefined;
  /** Set while it sleeps. */
  #wake: (() => void) | undefined;
  #sink: WatchSink<Shown> | undefined;
  /** The initial records were delivered. */
  #isLive: boolean;
  /**
   * Set while it sleeps, and not cancelled when it wakes: most watches wake many times before it
   * fires.
   */
  #alarm: Timer | undefined;
  readonly #stopListening: () => void;

  constructor(
    private readonly core: Core,
    log: CommitLog,
    lineage: string,
    private readonly options: CheckedWatch<Shown>,
    private readonly onEnd: () => void,
  ) {
    this.#slice = new Slice({ monotonic: () => core.clock.monotonic() });
    this.#reader = new LogReader({ core, log, lineage, slice: this.#slice }, options);
    this.#reader.prove();
    this.#lastSentAt = core.clock.monotonic();
    options.signal?.addEventListener('abort', this.#end, { once: true });
    this.#isLive = !options.includeInitial;
    this.#stopListening = options.fanOut.add(() => this.#onNews());
    this.#messages = this.#run();
  }

  /** The last commit that was delivered or skipped. */
  get position(): number {
    return this.#reader.position;
  }

  /** Commits were rolled back. A watch that delivered one of them cannot continue. */
  historyCut(): void {
    const loss = this.#reader.lossOf(this.core.durable.seq);
    if (!loss) return;
    this.#failure = loss;
    this.#rouse();
  }

  next(): Promise<IteratorResult<WatchMessage<Shown>, void>> {
    return this.#messages.next();
  }

  /** The next message if one is available now; `next` waits for one. */
  poll(): WatchMessage<Shown> | undefined {
    if (!this.#isLive || this.#over || this.core.closed || this.#failure) return undefined;
    if (this.#slice.due()) return undefined;
    this.#reader.prove();
    const message = this.#reader.next();
    if (message) this.#lastSentAt = this.core.clock.monotonic();
    return message;
  }

  /**
   * From now on commits that arrive while `next` waits go to `sink` at once, and `next` keeps
   * waiting. With many watches, one promise per watch and commit would be most of the cost of
   * delivery.
   */
  pushTo(sink: WatchSink<Shown>): void {
    this.#sink = sink;
  }

  async return(): Promise<IteratorResult<WatchMessage<Shown>, void>> {
    this.#end();
    return this.#messages.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end = (): void => {
    if (this.#over) return;
    this.#over = true;
    this.options.signal?.removeEventListener('abort', this.#end);
    this.#stopListening();
    this.#alarm?.cancel();
    this.onEnd();
    this.#rouse();
  };

  async *#run(): AsyncGenerator<WatchMessage<Shown>, void, void> {
    try {
      if (this.options.includeInitial) yield* this.#initial();
      this.#isLive = true;
      for (;;) {
        const message = await this.#nextMessage();
        if (!message) return;
        this.#lastSentAt = this.core.clock.monotonic();
        yield message;
      }
    } finally {
      this.#end();
    }
  }

  /** The records that match now, all at one commit, after which the changes continue. */
  async *#initial(): AsyncGenerator<WatchMessage<Shown>, void, void> {
    const { collection, filter, show } = this.options;
    const { view, state } = await durableSnapshot(this.core);
    try {
      const wanted = { collection, filter, isOver: () => this.#isOver() };
      for await (const changes of initialBatches(this.core, view, wanted)) {
        if (this.#isOver()) return;
        yield { ...this.#reader.message('initial', state, changes.map(show)), resumeToken: '' };
      }
    } finally {
      view.done();
    }
    if (this.#isOver()) return;
    this.#reader.moveTo(state);
    this.#lastSentAt = this.core.clock.monotonic();
    yield this.#reader.message('initial_end', state);
  }

  /** The next commit with visible changes, or a bookmark when one is due; undefined at the end. */
  async #nextMessage(): Promise<WatchMessage<Shown> | undefined> {
    while (!this.#isOver()) {
      // Otherwise a reader that is far behind would block the event loop.
      if (this.#slice.due()) {
        await this.#slice.pause();
        continue;
      }
      this.#reader.prove();
      const message = this.#reader.next();
      if (message) return message;
      if (this.#bookmarkInMs() <= 0) return this.#reader.bookmark();
      if (!this.#reader.hasMore) await this.#sleep();
    }
    return undefined;
  }

  #bookmarkInMs(): number {
    return this.#lastSentAt + this.options.heartbeatMs - this.core.clock.monotonic();
  }

  async #sleep(): Promise<void> {
    this.#alarm ??= this.core.clock.after(this.#bookmarkInMs(), () => {
      this.#alarm = undefined;
      this.#rouse();
    });
    await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#slice.enterAnew();
  }

  #rouse(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /**
   * A watch that is not asleep finds new commits itself, after those its reader has yet to read.
   */
  #onNews(): void {
    if (this.#wake && !this.#isPushed()) this.#rouse();
  }

  /** True when the sink took everything; otherwise `next` continues where the sink stopped. */
  #isPushed(): boolean {
    const sink = this.#sink;
    if (!sink || this.#over || this.core.closed || this.#failure) return false;
    try {
      this.#reader.prove();
      this.#slice.enterAnew();
      while (this.#reader.hasMore) {
        if (!sink.hasRoom() || this.#slice.due()) return false;
        const messages = this.#reader.nextBatch();
        if (messages.length === 0) continue;
        sink.take(messages);
        this.#lastSentAt = this.core.clock.monotonic();
      }
      return true;
    } catch (error) {
      // Reported to the caller of `next`, not to the writer of the commit.
      this.#failure = error as Error;
      return false;
    }
  }

  /** True when the consumer has stopped; throws when the database is closed. */
  #isOver(): boolean {
    if (this.#over) return true;
    if (this.core.closed) throw this.core.closed;
    if (this.#failure) throw this.#failure;
    return false;
  }
}

type Wake = () => void;

/** After a round shorter than this no pause is needed. */
const shortMs = 0.5;

/** Maximum time of a round before it yields. */
const sliceMs = 2;

/**
 * Wakes the watches when commits are on disk. With many watches one round may take longer than the
 * time to the next commit: then a pause as long as the round follows it, so that watches use at
 * most half of the event loop and get several commits at a time.
 */
export class FanOut {
  readonly #wakes = new Set<Wake>();
  #isUnderWay = false;
  /** There were commits after the current round started. */
  #isBehind = false;
  #restUntil = 0;
  #rest: Timer | undefined;
  #stopListening: (() => void) | undefined;

  /** Calls `onRoundEnd` after each round. */
  constructor(
    private readonly core: Core,
    private readonly onRoundEnd: () => void,
  ) {}

  /**
   * Calls `wake`, which must not throw, when there may be new commits. Returns a function to stop.
   */
  add(wake: Wake): () => void {
    this.#wakes.add(wake);
    // A commit costs nothing here while nobody watches.
    this.#stopListening ??= this.core.onDurable(() => this.#onDurable());
    return () => {
      this.#wakes.delete(wake);
      if (this.#wakes.size > 0) return;
      this.#stopListening?.();
      this.#stopListening = undefined;
    };
  }

  #onDurable(): void {
    if (this.core.closed) return this.#notifyEnd();
    if (this.#isUnderWay) this.#isBehind = true;
    else if (!this.#rest) this.#start();
  }

  /** The end is announced at once: no later round would do it. */
  #notifyEnd(): void {
    this.#rest?.cancel();
    for (const wake of this.#wakes) wake();
  }

  #start(): void {
    const { clock } = this.core;
    const restMs = this.#restUntil - clock.monotonic();
    if (restMs <= 0) return this.#round();
    this.#rest = clock.after(restMs, () => {
      this.#rest = undefined;
      this.#round();
    });
  }

  #round(): void {
    this.#isUnderWay = true;
    this.#isBehind = false;
    const wakes = this.#wakes.values();
    this.#goOn(wakes, wakes.next(), this.core.clock.monotonic());
  }

  #goOn(wakes: Iterator<Wake>, first: IteratorResult<Wake>, startedAt: number): void {
    const { clock } = this.core;
    const until = clock.monotonic() + sliceMs;
    for (let next = first; !next.done; next = wakes.next()) {
      if (clock.monotonic() >= until) {
        setImmediate(() => this.#goOn(wakes, next, startedAt));
        return;
      }
      next.value();
    }
    // Woken watches may work in the microtasks that follow; this runs after them.
    setImmediate(() => this.#endRound(startedAt));
  }

  #endRound(startedAt: number): void {
    const now = this.core.clock.monotonic();
    const tookMs = now - startedAt;
    this.#restUntil = tookMs > shortMs ? now + tookMs : now;
    this.#isUnderWay = false;
    this.onRoundEnd();
    if (this.#isBehind && !this.core.closed) this.#start();
  }
}
