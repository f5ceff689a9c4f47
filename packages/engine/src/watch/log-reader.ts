import { systemCollection, type Core } from '../core/core.js';
import { type Commit, decodeCommit } from '../format/record.js';
import type { Hash64 } from '../value/bytes.js';
import type { Slice } from '../core/slice.js';
import {
  visibleChange,
  type RecordFilter,
  type VisibleChange,
  type WatchMessage,
  badToken,
  sameHash,
  writeToken,
  type ResumePosition,
} from './message.js';
import { refuse } from '../value/documents.js';

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
interface ReaderParts {
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

interface OfCommit {
  readonly commit: Commit;
  /** Size of its row in the log. */
  readonly bytes: number;
}

/**
 * A cache of the newest commits, limited in size. A ring of slots instead of a map: the outgrown
 * tables of a map point to the next one, and once one is in the old generation of the heap, all
 * later ones stay in memory too.
 */
export class RecentCommits<Entry extends OfCommit> {
  readonly #places: (Entry | undefined)[];
  #bytes = 0;
  /** The last commit that was dropped. */
  #forgotten = 0;

  constructor(
    private readonly capacity: number,
    private readonly maxBytes: number,
  ) {
    this.#places = Array.from({ length: capacity }, () => undefined);
  }

  find(seq: number): Entry | undefined {
    const entry = this.#places[seq % this.capacity];
    return entry?.commit.seq === seq ? entry : undefined;
  }

  keep(entry: Entry): void {
    const place = entry.commit.seq % this.capacity;
    const before = this.#places[place];
    // A reader that is far behind must not evict what all others are about to read.
    if (before && before.commit.seq > entry.commit.seq) return;
    if (this.#bytes + entry.bytes > this.maxBytes) this.clear();
    else if (before) this.#bytes -= before.bytes;
    this.#places[place] = entry;
    this.#bytes += entry.bytes;
  }

  /** Drops the commits up to this one. */
  forgetTo(seq: number): void {
    const last = Math.max(this.#forgotten, seq - this.capacity);
    for (let next = last + 1; next <= seq; next++) this.#forget(next);
    this.#forgotten = Math.max(this.#forgotten, seq);
  }

  /** Drops all, and resets the position: new commits may reuse the numbers. */
  clear(): void {
    this.#places.fill(undefined);
    this.#bytes = 0;
    this.#forgotten = 0;
  }

  #forget(seq: number): void {
    const entry = this.#places[seq % this.capacity];
    if (!entry || entry.commit.seq > seq) return;
    this.#places[seq % this.capacity] = undefined;
    this.#bytes -= entry.bytes;
  }
}

export const maxCached = 1_024;
const maxCachedBytes = 8 * 2 ** 20;

interface ReadCommit {
  readonly commit: Commit;
  readonly bytes: number;
}

/**
 * The change log for watches: only commits that are on disk. The newest ones are cached decoded,
 * because most watches are at the same position.
 */
export class CommitLog {
  readonly #cached = new RecentCommits<ReadCommit>(maxCached, maxCachedBytes);

  constructor(private readonly core: Core) {}

  /** The commit, which must be on disk. Refuses WATCH_COMPACTED when the log no longer has it. */
  read(seq: number): ReadCommit {
    this.checkReaches(seq);
    const cached = this.#cached.find(seq);
    if (cached) return cached;
    const row = this.core.commitRow(seq);
    if (!row) throw refuse('CORRUPT', `The change log has no commit ${seq}; run "ctl db verify".`);
    const read = { commit: decodeCommit(seq, row, this.core.codec), bytes: row.length };
    if (read.bytes <= maxCachedBytes / 8) this.#cached.keep(read);
    return read;
  }

  /** The chain hash after commit `seq`, which must be on disk. */
  chainAt(seq: number): Hash64 {
    const { durable } = this.core;
    if (seq === durable.seq) return durable.chain;
    if (seq === durable.oldestSeq - 1) return durable.oldestChain;
    return this.read(seq).commit.chain;
  }

  /** Drops all cached commits: the history was rolled back. */
  clear(): void {
    this.#cached.clear();
  }

  /** Drops cached commits up to this one. */
  forgetTo(seq: number): void {
    this.#cached.forgetTo(seq);
  }

  /** Refuses a position that the log no longer reaches. */
  checkReaches(seq: number): void {
    if (seq < this.core.durable.oldestSeq) throw compacted(seq, this.core.durable.oldestSeq);
  }
}

export function compacted(seq: number, oldestSeq: number) {
  return refuse(
    'WATCH_COMPACTED',
    `The change log begins at commit ${oldestSeq} and no longer has ${seq}; ` +
      'start again from the present state.',
    { oldest_seq: String(oldestSeq) },
  );
}

// Watches that share messages are close together: slow ones build theirs themselves.
const maxShared = 256;
const maxSharedBytes = 512 * 1024;
const maxBatches = 4;

interface CachedMessage<Shown> {
  readonly commit: Commit;
  readonly bytes: number;
  /** Undefined: the commit has nothing to show. */
  readonly message: WatchMessage<Shown> | undefined;
}

/** The messages of consecutive commits. */
interface Batch<Shown> {
  /** The commit before the first of them. */
  readonly after: number;
  /** The last of the commits. */
  readonly seq: number;
  readonly chain: Hash64;
  readonly bytes: number;
  readonly messages: readonly WatchMessage<Shown>[];
}

/**
 * Messages of the newest commits, shared by watches that show the same: built once, sent by all.
 */
export class SharedMessages<Shown> {
  /** Number of watches that share them. */
  users = 0;
  readonly #cached = new RecentCommits<CachedMessage<Shown>>(maxShared, maxSharedBytes);
  /** Oldest first. */
  #batches: Batch<Shown>[] = [];

  /** The message of exactly this commit: after a failover another one may have its number. */
  find(commit: Commit): CachedMessage<Shown> | undefined {
    const cached = this.#cached.find(commit.seq);
    return cached?.commit === commit ? cached : undefined;
  }

  keep(commit: Commit, bytes: number, message: WatchMessage<Shown> | undefined): void {
    if (this.users < 2 || bytes > maxSharedBytes / 2) return;
    this.#cached.keep({ commit, bytes, message });
  }

  /** The next messages for a watch at this commit. */
  batchAfter(seq: number): Batch<Shown> | undefined {
    return this.#batches.find(({ after }) => after === seq);
  }

  keepBatch(batch: Batch<Shown>): void {
    if (this.users < 2 || batch.bytes > maxSharedBytes / 2) return;
    this.#batches.push(batch);
    if (this.#batches.length > maxBatches) this.#batches.shift();
  }

  /** Drops messages that all these watches have delivered. */
  forgetTo(seq: number): void {
    this.#cached.forgetTo(seq);
    if (this.#batches.some(({ after }) => after < seq)) {
      this.#batches = this.#batches.filter(({ after }) => after >= seq);
    }
  }

  /** Commits were rolled back, and new ones may reuse their numbers. */
  historyCut(): void {
    this.#cached.clear();
    this.#batches = [];
  }
}
