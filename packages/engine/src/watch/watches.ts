import type { Core } from '../core/core.js';
import { checkCollectionName, refuse } from '../value/documents.js';
import { lineageOf } from '../storage/file/tables.js';
import type { Hash64 } from '../value/bytes.js';
import { CommitLog, maxCached, SharedMessages } from './log-reader.js';
import { FanOut, Watch } from './watch.js';
import {
  showChange,
  type RecordFilter,
  type ShowOptions,
  type VisibleChange,
  type WatchChange,
  readToken,
  type ResumePosition,
} from './message.js';

export interface WatchOptions<Shown = WatchChange> extends ShowOptions {
  /** Name of a collection, which may not exist yet. Absent: the whole database. */
  collection?: string | undefined;
  /** Shows a change when the record matched before it or matches after it. */
  filter?: RecordFilter | undefined;
  /** Also shows changes of the system collection, for followers. */
  includeSystem?: boolean | undefined;
  /** Continues after the message that carried it. */
  resumeToken?: string | undefined;
  /** The first commit to deliver, which may be a future one. 0 or absent: from now on. */
  startSeq?: number | undefined;
  /**
   * First the records that match now, then `initial_end`, then the changes. Ignored with a resume
   * token, whose owner already has the records.
   */
  includeInitial?: boolean | undefined;
  /** How often an idle watch gets a bookmark. Default: 15 s. */
  heartbeatMs?: number | undefined;
  /** Ends the watch without an error. */
  signal?: AbortSignal | undefined;
  /** Builds the content of the messages, instead of `includeBefore` and `fields`. */
  show?: ((change: VisibleChange) => Shown) | undefined;
  /**
   * Identifies what the watch shows: watches with the same key, which must have the same
   * collection, filter and `show`, get the same message objects. Do not modify them.
   */
  shareKey?: string | undefined;
  /** Also show commits without changes: for followers, whose history must be the same. */
  includeEmpty?: boolean | undefined;
  /**
   * Also show the results of requests: for followers, which may have to repeat them after a
   * failover.
   */
  includeResults?: boolean | undefined;
}

const defaultHeartbeatMs = 15_000;
const leastHeartbeatMs = 10;

/** The open watches of a database. */
export class Watches {
  readonly #open = new Set<Watch<unknown>>();
  readonly #sharedByKey = new Map<string, SharedMessages<unknown>>();
  readonly #log: CommitLog;
  readonly #fanOut: FanOut;

  constructor(private readonly core: Core) {
    this.#log = new CommitLog(core);
    this.#fanOut = new FanOut(core, () => this.#forgetDelivered());
  }

  /** How many watches are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Position of the slowest watch; undefined when there is none. */
  get oldestSeq(): number | undefined {
    let oldest: number | undefined;
    for (const { position } of this.#open) oldest = Math.min(oldest ?? position, position);
    return oldest;
  }

  /** The chain hash after commit `seq`, which must be on disk. Refuses WATCH_COMPACTED. */
  chainAt(seq: number): Hash64 {
    if (seq < this.core.durable.oldestSeq - 1) this.#log.checkReaches(seq + 1);
    return this.#log.chainAt(seq);
  }

  /** Commits were rolled back: a watch that delivered one of them ends with an error. */
  historyCut(): void {
    this.#log.clear();
    for (const shared of this.#sharedByKey.values()) shared.historyCut();
    for (const watch of this.#open) watch.historyCut();
  }

  open<Shown = WatchChange>(options: WatchOptions<Shown> = {}): Watch<Shown> {
    if (this.core.closed) throw this.core.closed;
    if (options.collection !== undefined) checkCollectionName(options.collection);
    const lineage = lineageOf(this.core.tables);
    const position = this.#positionOf(options, lineage);
    const checked = {
      collection: options.collection,
      filter: options.filter,
      includeEmpty: options.includeEmpty,
      includeResults: options.includeResults,
      includeSystem: options.includeSystem ?? false,
      position,
      includeInitial: Boolean(options.includeInitial) && !options.resumeToken,
      heartbeatMs: checkHeartbeat(options.heartbeatMs),
      signal: options.signal,
      show: (options.show ?? showChange(options)) as unknown as (change: VisibleChange) => Shown,
      fanOut: this.#fanOut,
      shared: this.#sharedBy<Shown>(options.shareKey),
    };
    const watch = new Watch<Shown>(this.core, this.#log, lineage, checked, () => {
      if (this.#open.delete(watch)) this.#leave(options.shareKey);
    });
    this.#open.add(watch);
    if (checked.shared) checked.shared.users++;
    if (options.signal?.aborted) void watch.return();
    return watch;
  }

  /**
   * Frees cached commits that all current watches have delivered. If they stayed until they are
   * evicted, they would reach the old generation of the heap, and freeing them would take a full
   * garbage collection.
   */
  #forgetDelivered(): void {
    const { seq } = this.core.durable;
    let delivered = seq;
    for (const { position } of this.#open) {
      if (position < delivered && position >= seq - maxCached) delivered = position;
    }
    this.#log.forgetTo(delivered);
    for (const shared of this.#sharedByKey.values()) shared.forgetTo(delivered);
  }

  #sharedBy<Shown>(shareKey: string | undefined): SharedMessages<Shown> | undefined {
    if (shareKey === undefined) return undefined;
    let shared = this.#sharedByKey.get(shareKey);
    if (!shared) this.#sharedByKey.set(shareKey, (shared = new SharedMessages()));
    return shared as SharedMessages<Shown>;
  }

  #leave(shareKey: string | undefined): void {
    const shared = shareKey === undefined ? undefined : this.#sharedByKey.get(shareKey);
    if (shared && --shared.users === 0) this.#sharedByKey.delete(shareKey!);
  }

  #positionOf(
    options: Pick<WatchOptions, 'resumeToken' | 'startSeq' | 'includeInitial'>,
    lineage: string,
  ): ResumePosition {
    const { resumeToken, startSeq = 0, includeInitial = false } = options;
    if (!Number.isSafeInteger(startSeq) || startSeq < 0 || startSeq >= 2 ** 48) {
      throw refuse('BAD_REQUEST', 'start_seq must be the number of a commit, or 0 for now.');
    }
    if (startSeq > 0) {
      if (resumeToken) {
        throw refuse('BAD_REQUEST', 'Send resume_token or start_seq, not both.');
      }
      if (includeInitial) {
        throw refuse(
          'BAD_REQUEST',
          'Send start_seq or include_initial, not both: after the records of now come the ' +
            'changes after now.',
        );
      }
      this.#log.checkReaches(startSeq);
      return { seq: startSeq - 1, chain: undefined };
    }
    if (!resumeToken) return { seq: this.core.durable.seq, chain: this.core.durable.chain };
    const position = readToken(lineage, resumeToken);
    this.#log.checkReaches(position.seq + 1);
    return position;
  }
}

function checkHeartbeat(heartbeatMs: number | undefined): number {
  if (heartbeatMs === undefined) return defaultHeartbeatMs;
  if (Number.isFinite(heartbeatMs) && heartbeatMs > 0) {
    return Math.max(heartbeatMs, leastHeartbeatMs);
  }
  throw refuse('BAD_REQUEST', `heartbeat must be a duration longer than 0, not ${heartbeatMs} ms.`);
}
