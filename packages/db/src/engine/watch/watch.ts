import type { Timer } from '@millrace/kit/clock';
import type { Commit } from '../changes.js';
import type { Core } from '../core.js';
import { durableSnapshot } from '../durable-snapshot.js';
import type { Hash64 } from '../hash.js';
import { Slice } from '../query/slice.js';
import type { CommitLog, ReadCommit } from './commit-log.js';
import type { FanOut } from './fan-out.js';
import { initialBatches } from './initial.js';
import {
  visibleChange,
  type RecordFilter,
  type VisibleChange,
  type WatchMessage,
} from './message.js';
import type { SharedMessages } from './shared-messages.js';
import { badToken, sameHash, writeToken, type ResumePosition } from './token.js';

/** A watch whose options have been checked. */
export interface CheckedWatch<Shown> {
  /** Absent: the whole database. */
  collection: string | undefined;
  filter: RecordFilter | undefined;
  /** The last commit not to tell of. */
  position: ResumePosition;
  includeInitial: boolean;
  heartbeatMs: number;
  signal: AbortSignal | undefined;
  show: (change: VisibleChange) => Shown;
  /** Tells when there may be news. */
  fanOut: FanOut;
  /** Where watches that show the same keep what they show. */
  shared: SharedMessages<Shown> | undefined;
}

/**
 * Follows the change log from a position. There is no buffer that could overflow: the log is read
 * when the consumer asks for more, and when there is no more the watch sleeps until the next
 * commit is on disk. It begins where the log stood when it was made, not when it is first read.
 */
export class Watch<Shown> implements AsyncIterableIterator<WatchMessage<Shown>> {
  readonly #messages: AsyncGenerator<WatchMessage<Shown>, void, void>;
  readonly #slice: Slice;
  #position: number;
  #chain: Hash64 | undefined;
  /** The position is that of a token whose commit has not come past here yet. */
  #unproven: boolean;
  #lastSentAt: number;
  #over = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  /** The records of the start have been told. */
  #isLive: boolean;
  /** Set while it sleeps, and left to run on when it wakes: most wake many times before it ends. */
  #alarm: Timer | undefined;
  readonly #stopListening: () => void;

  constructor(
    private readonly core: Core,
    private readonly log: CommitLog,
    private readonly lineage: string,
    private readonly options: CheckedWatch<Shown>,
    private readonly onEnd: () => void,
  ) {
    this.#position = options.position.seq;
    this.#chain = options.position.chain;
    this.#unproven = this.#chain !== undefined;
    this.#prove();
    this.#lastSentAt = core.clock.monotonic();
    this.#slice = new Slice({ monotonic: () => core.clock.monotonic() });
    options.signal?.addEventListener('abort', this.#end, { once: true });
    this.#isLive = !options.includeInitial;
    this.#stopListening = options.fanOut.add(() => this.#wake?.());
    this.#messages = this.#run();
  }

  /** The last commit it has told of or passed over. */
  get position(): number {
    return this.#position;
  }

  /** Commits were taken back. Whoever has been told of one of them cannot just go on. */
  historyCut(): void {
    if (this.#position <= this.core.durable.seq || this.#chain === undefined) return;
    this.#failure = badToken(`names commit ${this.#position}, which was lost in a fail-over`);
    this.#wake?.();
  }

  next(): Promise<IteratorResult<WatchMessage<Shown>, void>> {
    return this.#messages.next();
  }

  /** The next message if there is a change to tell of right now: `next` waits for one. */
  poll(): WatchMessage<Shown> | undefined {
    if (!this.#isLive || this.#over || this.core.closed || this.#failure) return undefined;
    if (this.#slice.due()) return undefined;
    this.#prove();
    const message = this.#nextChanges();
    if (message) this.#lastSentAt = this.core.clock.monotonic();
    return message;
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
    this.#wake?.();
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
        yield { ...this.#message('initial', state, changes.map(show)), resumeToken: '' };
      }
    } finally {
      view.done();
    }
    if (this.#isOver()) return;
    this.#position = state.seq;
    this.#chain = state.chain;
    this.#lastSentAt = this.core.clock.monotonic();
    yield this.#message('initial_end', state);
  }

  /** The next commit with something to show, or a bookmark when it is time; undefined at the end. */
  async #nextMessage(): Promise<WatchMessage<Shown> | undefined> {
    const { core } = this;
    while (!this.#isOver()) {
      // A reader that is far behind would else never let go of the event loop.
      if (this.#slice.due()) {
        await this.#slice.pause();
        continue;
      }
      this.#prove();
      const message = this.#nextChanges();
      if (message) return message;
      if (this.#bookmarkInMs() <= 0) return this.#bookmark();
      if (this.#position >= core.durable.seq) await this.#sleep();
    }
    return undefined;
  }

  /** The next commit with something to show; undefined at the last one, or when a pause is due. */
  #nextChanges(): WatchMessage<Shown> | undefined {
    while (this.#position < this.core.durable.seq) {
      const read = this.log.read(this.#position + 1);
      this.#position = read.commit.seq;
      this.#chain = read.commit.chain;
      const message = this.#changesOf(read);
      if (message) return message;
      if (this.#slice.spend(read.bytes)) return undefined;
    }
    return undefined;
  }

  #changesOf({ commit, bytes }: ReadCommit): WatchMessage<Shown> | undefined {
    const { shared, show } = this.options;
    const known = shared?.find(commit);
    if (known) return known.message;
    const changes = this.#visible(commit);
    let message: WatchMessage<Shown> | undefined;
    if (changes.length > 0) {
      message = this.#message('changes', commit, changes.map(show));
      message.committedAt = new Date(commit.at);
    }
    shared?.keep(commit, bytes, message);
    return message;
  }

  #visible(commit: Commit): VisibleChange[] {
    const { collection, filter } = this.options;
    const visible: VisibleChange[] = [];
    for (const change of commit.changes) {
      const { name } = this.core.catalog.byId(change.collection);
      if (collection !== undefined && name !== collection) continue;
      const shown = visibleChange(change, commit.seq, name, filter);
      if (shown) visible.push(shown);
    }
    return visible;
  }

  #message(
    kind: WatchMessage['kind'],
    at: { seq: number; epoch: number; chain: Hash64 },
    changes: Shown[] = [],
  ): WatchMessage<Shown> {
    return {
      kind,
      seq: at.seq,
      epoch: at.epoch,
      changes,
      resumeToken: writeToken(this.lineage, { seq: this.#position, chain: this.#chain }),
      leaderSeq: this.core.durable.seq,
      chainHash: at.chain,
    };
  }

  #bookmark(): WatchMessage<Shown> {
    const { seq, epoch, chain } = this.core.durable;
    // A watch that waits for a commit still to come stands beyond the last one.
    const reached = Math.min(this.#position, seq);
    return this.#message('bookmark', { seq: reached, epoch, chain: this.#chain ?? chain });
  }

  #bookmarkInMs(): number {
    return this.#lastSentAt + this.options.heartbeatMs - this.core.clock.monotonic();
  }

  async #sleep(): Promise<void> {
    this.#alarm ??= this.core.clock.after(this.#bookmarkInMs(), () => {
      this.#alarm = undefined;
      this.#wake?.();
    });
    await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
    this.#slice.enterAnew();
  }

  /** True when the consumer has had enough; throws when the database has. */
  #isOver(): boolean {
    if (this.#over) return true;
    if (this.core.closed) throw this.core.closed;
    if (this.#failure) throw this.#failure;
    return false;
  }

  /** Checks that the commit named by a token is the one that this history has. */
  #prove(): void {
    if (!this.#unproven || this.#position > this.core.durable.seq) return;
    this.log.checkReaches(this.#position + 1);
    if (!sameHash(this.log.chainAt(this.#position), this.#chain!)) {
      throw badToken(`names commit ${this.#position}, which was lost in a fail-over`);
    }
    this.#unproven = false;
  }
}
