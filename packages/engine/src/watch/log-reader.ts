import { systemCollection } from '../core/catalog.js';
import type { Commit } from '../format/changes.js';
import type { Core } from '../core/core.js';
import type { Hash64 } from '../value/hash.js';
import type { Slice } from '../core/slice.js';
import type { CommitLog, ReadCommit } from './commit-log.js';
import {
  visibleChange,
  type RecordFilter,
  type VisibleChange,
  type WatchMessage,
} from './message.js';
import type { Batch, SharedMessages } from './shared-messages.js';
import { badToken, sameHash, writeToken, type ResumePosition } from './token.js';

/** Where a watch starts, and what it shows. */
export interface ReaderOptions<Shown> {
  /** Absent: the whole database. */
  collection: string | undefined;
  filter: RecordFilter | undefined;
  /** Also show commits without changes, which start the epoch of a leader. */
  includeEmpty?: boolean | undefined;
  /** Also show the results of requests. */
  includeResults?: boolean | undefined;
  /** Also shows changes of the system collection. */
  includeSystem: boolean;
  /** The last commit not to deliver. */
  position: ResumePosition;
  show: (change: VisibleChange) => Shown;
  /** Messages cached for watches that show the same. */
  shared: SharedMessages<Shown> | undefined;
}

/** What a log reader works on. */
export interface ReaderParts {
  core: Core;
  log: CommitLog;
  lineage: string;
  /** Decides when a pause is due. */
  slice: Slice;
}

const maxBatchBytes = 64 * 1024;

/** A position in the change log and the changes after it. */
export class LogReader<Shown> {
  #position: number;
  #chain: Hash64 | undefined;
  /** The position is from a resume token whose commit was not checked yet. */
  #unproven: boolean;

  constructor(
    private readonly parts: ReaderParts,
    private readonly options: ReaderOptions<Shown>,
  ) {
    this.#position = options.position.seq;
    this.#chain = options.position.chain;
    this.#unproven = this.#chain !== undefined;
  }

  /** The last commit that was delivered or skipped. */
  get position(): number {
    return this.#position;
  }

  get hasMore(): boolean {
    return this.#position < this.parts.core.durable.seq;
  }

  /** Continues after a commit whose records were delivered. */
  moveTo({ seq, chain }: { seq: number; chain: Hash64 }): void {
    this.#position = seq;
    this.#chain = chain;
  }

  /** Set when rolled-back commits were already delivered; the watch must restart. */
  lossOf(durableSeq: number): Error | undefined {
    if (this.#position <= durableSeq || this.#chain === undefined) return undefined;
    return badToken(`names commit ${this.#position}, which was lost in a fail-over`);
  }

  /** Checks that the commit of a resume token is in this history. */
  prove(): void {
    const { core, log } = this.parts;
    if (!this.#unproven || this.#position > core.durable.seq) return;
    log.checkReaches(this.#position + 1);
    if (!sameHash(log.chainAt(this.#position), this.#chain!)) {
      throw badToken(`names commit ${this.#position}, which was lost in a fail-over`);
    }
    this.#unproven = false;
  }

  /** The next commit with visible changes; undefined at the end, or when a pause is due. */
  next(): WatchMessage<Shown> | undefined {
    while (this.hasMore) {
      const read = this.#read();
      const message = this.#changesOf(read);
      if (message) return message;
      if (this.parts.slice.spend(read.bytes)) return undefined;
    }
    return undefined;
  }

  /** The messages of the next commits, up to the last one or the batch limit. */
  nextBatch(): readonly WatchMessage<Shown>[] {
    const { shared } = this.options;
    const known = shared?.batchAfter(this.#position);
    if (known) {
      this.moveTo(known);
      return known.messages;
    }
    const batch = this.#readBatch();
    shared?.keepBatch(batch);
    return batch.messages;
  }

  message(
    kind: WatchMessage['kind'],
    at: { seq: number; epoch: number; chain: Hash64 },
    changes: Shown[] = [],
  ): WatchMessage<Shown> {
    const { core, lineage } = this.parts;
    return {
      kind,
      seq: at.seq,
      epoch: at.epoch,
      changes,
      resumeToken: writeToken(lineage, { seq: this.#position, chain: this.#chain }),
      leaderSeq: core.durable.seq,
      chainHash: at.chain,
    };
  }

  bookmark(): WatchMessage<Shown> {
    const { seq, epoch, chain } = this.parts.core.durable;
    // A watch that waits for a future commit has a position after the last one.
    const reached = Math.min(this.#position, seq);
    return this.message('bookmark', { seq: reached, epoch, chain: this.#chain ?? chain });
  }

  #readBatch(): Batch<Shown> {
    const after = this.#position;
    const messages: WatchMessage<Shown>[] = [];
    let bytes = 0;
    for (let isEnough = false; this.hasMore && !isEnough;) {
      const read = this.#read();
      const message = this.#changesOf(read);
      if (message) messages.push(message);
      bytes += read.bytes;
      isEnough = this.parts.slice.spend(read.bytes) || bytes >= maxBatchBytes;
    }
    return { after, seq: this.#position, chain: this.#chain!, bytes, messages };
  }

  #read(): ReadCommit {
    const read = this.parts.log.read(this.#position + 1);
    this.#position = read.commit.seq;
    this.#chain = read.commit.chain;
    return read;
  }

  #changesOf({ commit, bytes }: ReadCommit): WatchMessage<Shown> | undefined {
    const { shared, show } = this.options;
    const known = shared?.find(commit);
    if (known) return known.message;
    const changes = this.#visible(commit);
    let message: WatchMessage<Shown> | undefined;
    if (changes.length > 0 || (this.options.includeEmpty && commit.changes.length === 0)) {
      message = this.message('changes', commit, changes.map(show));
      message.committedAt = new Date(commit.at);
      if (this.options.includeResults && commit.results) message.results = commit.results;
    }
    shared?.keep(commit, bytes, message);
    return message;
  }

  #visible(commit: Commit): VisibleChange[] {
    const { collection, filter } = this.options;
    const visible: VisibleChange[] = [];
    for (const change of commit.changes) {
      const { name } = this.parts.core.catalog.byId(change.collection);
      if (collection !== undefined && name !== collection) continue;
      if (name === systemCollection && !this.options.includeSystem) continue;
      const shown = visibleChange(change, commit.seq, name, filter);
      if (shown) visible.push(shown);
    }
    return visible;
  }
}
