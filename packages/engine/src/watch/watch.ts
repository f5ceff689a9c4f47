import type { Timer } from '@millrace/kit/clock';
import type { Core } from '../core/core.js';
import { durableSnapshot } from '../core/durable-snapshot.js';
import { Slice } from '../core/slice.js';
import type { CommitLog } from './commit-log.js';
import { LogReader, type ReaderOptions } from './log-reader.js';
import type { FanOut } from './fan-out.js';
import { initialBatches } from './initial.js';
import type { WatchMessage } from './message.js';

/** A watch whose options have been checked. */
export interface CheckedWatch<Shown> extends ReaderOptions<Shown> {
  includeInitial: boolean;
  heartbeatMs: number;
  signal: AbortSignal | undefined;
  /** Tells when there may be news. */
  fanOut: FanOut;
}

/** Takes what there is to tell without asking for it. */
export interface WatchSink<Shown> {
  /** False: it accepts nothing now, and the caller of `next` gets it instead. */
  hasRoom(): boolean;
  /** Messages of changes. Watches of one look give the same array: do not change it. */
  take(messages: readonly WatchMessage<Shown>[]): void;
}

/**
 * Follows the change log from a position. There is no buffer that could overflow: the log is read
 * when the consumer asks for more, and when there is no more the watch sleeps until the next
 * commit is on disk. It begins where the log stood when it was made, not when it is first read.
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
  /** The records of the start have been told. */
  #isLive: boolean;
  /** Set while it sleeps, and left to run on when it wakes: most wake many times before it ends. */
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

  /** The last commit it has told of or passed over. */
  get position(): number {
    return this.#reader.position;
  }

  /** Commits were taken back. Whoever has been told of one of them cannot just go on. */
  historyCut(): void {
    const loss = this.#reader.lossOf(this.core.durable.seq);
    if (!loss) return;
    this.#failure = loss;
    this.#rouse();
  }

  next(): Promise<IteratorResult<WatchMessage<Shown>, void>> {
    return this.#messages.next();
  }

  /** The next message if there is a change right now; `next` waits for one. */
  poll(): WatchMessage<Shown> | undefined {
    if (!this.#isLive || this.#over || this.core.closed || this.#failure) return undefined;
    if (this.#slice.due()) return undefined;
    this.#reader.prove();
    const message = this.#reader.next();
    if (message) this.#lastSentAt = this.core.clock.monotonic();
    return message;
  }

  /**
   * From now on what is committed while `next` waits goes to `sink` at once, and `next` waits on.
   * Where many watch, a promise for each of them and each commit is most of what telling costs.
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

  /** The records that match now, all at one commit, from which the changes then go on. */
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

  /** The next commit with something to show, or a bookmark when it is time; undefined at the end. */
  async #nextMessage(): Promise<WatchMessage<Shown> | undefined> {
    while (!this.#isOver()) {
      // A reader that is far behind would else never let go of the event loop.
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

  /** A watch that does not sleep finds the news by itself, after what its reader has yet to take. */
  #onNews(): void {
    if (this.#wake && !this.#isPushed()) this.#rouse();
  }

  /** True when the sink has all there is; else the pull goes on from where the sink stopped. */
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
      // For the one who waits for `next`: whoever made the commit is not to blame.
      this.#failure = error as Error;
      return false;
    }
  }

  /** True when the consumer has had enough; throws when the database has. */
  #isOver(): boolean {
    if (this.#over) return true;
    if (this.core.closed) throw this.core.closed;
    if (this.#failure) throw this.#failure;
    return false;
  }
}
