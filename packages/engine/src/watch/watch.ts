import type { Timer } from '@millrace/kit/clock';
import type { Core } from '../core/core.js';
import { durableSnapshot } from '../core/durable-snapshot.js';
import { Slice } from '../core/slice.js';
import type { CommitLog } from './commit-log.js';
import { LogReader, type ReaderOptions } from './log-reader.js';
import type { FanOut } from './fan-out.js';
import { initialBatches } from './initial.js';
import type { WatchMessage } from './message.js';

/** A watch with validated options. */
export interface CheckedWatch<Shown> extends ReaderOptions<Shown> {
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
