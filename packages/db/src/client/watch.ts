import type { WatchChange, WatchMessage } from '@millrace/engine/watch/message';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Database, DataEncoding, type WatchRequestSchema } from '@millrace/contract/db';
import type { CollectionWatchOptions } from '@millrace/engine/api/collection-port';
import type { Filter } from '@millrace/engine/value/filter';
import { refuse } from '@millrace/engine/value/documents';
import { Backoff } from '@millrace/kit/backoff';
import { retryPolicy, type Session } from './session.js';
import { toWatchMessage, durationOf, uint64Of } from './records.js';
import { CallRefusal, connectionClosed, isPassing } from './failures.js';
import { filterMember } from './queries.js';
import type { Preference } from './router.js';

interface SentRecord {
  collection: string;
  key: string;
  rev: number;
  seq: number;
}

/**
 * Delivers the initial records of a watch once each, even if the connection fails in the middle.
 * The server then restarts the initial records: those already delivered are skipped, changed ones
 * become updates and missing ones become deletes, all before `initial_end`.
 */
class InitialRecords<T> {
  readonly #sent = new Map<string, SentRecord>();
  /** Ids received since the last restart. */
  #again: Set<string> | undefined;
  #isOpen = true;

  /** True until `initial_end` is received. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The server restarts the initial records. */
  restart(): void {
    if (this.#isOpen) this.#again = new Set();
  }

  /** Returns the messages to deliver for a message from the server. */
  pass(message: WatchMessage<WatchChange<T>>): WatchMessage<WatchChange<T>>[] {
    if (!this.#isOpen) return [message];
    if (message.kind === 'initial') {
      const changes = message.changes.flatMap((change) => this.#fresh(change));
      return changes.length > 0 ? [{ ...message, changes }] : [];
    }
    if (message.kind !== 'initial_end') return [message];
    const changes = this.#vanished(message.seq);
    this.#isOpen = false;
    this.#sent.clear();
    this.#again = undefined;
    if (changes.length === 0) return [message];
    return [{ ...message, kind: 'initial', changes, resumeToken: '' }, message];
  }

  #fresh(change: WatchChange<T>): WatchChange<T>[] {
    if (change.op !== 'insert') return [change];
    const { collection } = change;
    const { id, key, rev, seq } = change.record;
    this.#again?.add(id);
    const before = this.#sent.get(id);
    this.#sent.set(id, { collection, key, rev, seq });
    if (!before) return [change];
    return before.seq === seq ? [] : [{ ...change, op: 'update' }];
  }

  #vanished(seq: number): WatchChange<T>[] {
    if (!this.#again) return [];
    const again = this.#again;
    return [...this.#sent]
      .filter(([id]) => !again.has(id))
      .map(([id, { collection, key, rev }]) => ({
        op: 'delete',
        collection,
        entered: false,
        left: false,
        record: { id, key, rev, seq },
      }));
  }
}

export interface RemoteWatchOptions<
  T = never,
  F extends string = string,
> extends CollectionWatchOptions<T, F> {
  /** How long to retry reconnecting. Default: ten minutes. */
  reconnectForMs?: number | undefined;
  /** Called when the connection is lost; the watch reconnects automatically. */
  onCut?: ((reason: Error) => void) | undefined;
  /** With several addresses: which node to watch. Default: that of the connection. */
  prefer?: Preference | undefined;
}

/** With the filter in the form of the wire. */
type PlainWatchOptions = Omit<RemoteWatchOptions, 'filter'> & { filter?: Filter | undefined };

type Place = Pick<
  MessageInitShape<typeof WatchRequestSchema>,
  'resumeToken' | 'startSeq' | 'includeInitial'
>;

const { method: rpc } = Database;
const defaultHeartbeatMs = 15_000;
const defaultReconnectForMs = 10 * 60_000;

/**
 * A watch that survives reconnects: it resumes after the token of the last message, without gap or
 * duplicate. Its start position is fixed when it is opened; writes of the same client wait for
 * that.
 */
export class ResumingWatch<T> implements AsyncIterableIterator<
  WatchMessage<WatchChange<T>>,
  void,
  void
> {
  readonly #messages: AsyncGenerator<WatchMessage<WatchChange<T>>, void, void>;
  readonly #request: MessageInitShape<typeof WatchRequestSchema>;
  readonly #heartbeatMs: number;
  readonly #stop = new AbortController();
  readonly #initial: InitialRecords<T> | undefined;
  readonly #start: Promise<Place>;
  #backoff: Backoff;
  /** When the connection last worked. */
  #connectedAt: number;
  #patienceMs: number;
  #isCut = false;

  /** `collection` "" watches the whole database. */
  constructor(
    private readonly session: Session,
    private readonly collection: string,
    private readonly options: PlainWatchOptions,
  ) {
    const { filter, fields = [], includeBefore = false, heartbeatMs } = options;
    this.#heartbeatMs = heartbeatMs ?? defaultHeartbeatMs;
    this.#request = {
      collection,
      ...filterMember('filter', filter),
      fields: [...fields],
      includeBefore,
      encoding: DataEncoding.JSON,
      ...(heartbeatMs === undefined ? {} : { heartbeat: durationOf(heartbeatMs, 'heartbeat') }),
    };
    this.#initial =
      options.includeInitial && !options.resumeToken ? new InitialRecords() : undefined;
    this.#backoff = new Backoff(retryPolicy, session.random);
    this.#connectedAt = session.clock.monotonic();
    this.#patienceMs = session.timeoutMs;
    if (options.signal?.aborted) this.#end();
    options.signal?.addEventListener('abort', this.#end, { once: true });
    this.#start = this.#place();
    // The reader receives the failure; until then it must not be an unhandled rejection.
    this.#start.catch(() => undefined);
    this.#messages = this.#run();
  }

  next(): Promise<IteratorResult<WatchMessage<WatchChange<T>>, void>> {
    return this.#messages.next();
  }

  async return(): Promise<IteratorResult<WatchMessage<WatchChange<T>>, void>> {
    this.#end();
    return this.#messages.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end = (): void => {
    this.options.signal?.removeEventListener('abort', this.#end);
    this.#stop.abort();
  };

  #place(): Promise<Place> {
    const { resumeToken, startSeq, includeInitial } = this.options;
    if (resumeToken && startSeq) {
      throw refuse('BAD_REQUEST', 'Send resume_token or start_seq, not both.');
    }
    if (resumeToken) return Promise.resolve({ resumeToken });
    if (startSeq)
      return Promise.resolve({
        startSeq: uint64Of(startSeq, 'start_seq'),
        includeInitial: !!includeInitial,
      });
    if (includeInitial) return Promise.resolve({ includeInitial });
    const found = this.#afterNow();
    this.session.holdWrites(found);
    return found;
  }

  /**
   * The position after the last commit. The server would also start there, but if the connection
   * failed before the first message, the client would not know the position.
   */
  async #afterNow(): Promise<Place> {
    const { session, collection } = this;
    const options = { signal: this.#stop.signal, prefer: this.options.prefer };
    if (collection === '') {
      const { durableSeq } = await session.call(rpc.replicationStatus, {}, options);
      return { startSeq: durableSeq + 1n };
    }
    const request = { collection, limit: 1, fields: ['$id'], encoding: DataEncoding.JSON };
    let readSeq = 0n;
    for await (const reply of session.stream(rpc.find, request, options)) readSeq = reply.readSeq;
    return { startSeq: readSeq + 1n };
  }

  async *#run(): AsyncGenerator<WatchMessage<WatchChange<T>>, void, void> {
    try {
      let place = await this.#start;
      if (place.startSeq && !this.options.startSeq) this.#connected();
      for (;;) {
        for await (const message of this.#stream(place)) {
          if (message.resumeToken) place = { resumeToken: message.resumeToken };
          yield* this.#initial?.pass(message) ?? [message];
        }
        if (this.#stop.signal.aborted) return;
        await this.session.pause(this.#backoff.next(), this.#stop.signal);
        this.#initial?.restart();
      }
    } catch (error) {
      // A requested end is not a failure.
      if (this.#stop.signal.aborted) return;
      throw error;
    } finally {
      this.#end();
    }
  }

  /** Runs one stream until the connection fails. Throws errors that a reconnect cannot resolve. */
  async *#stream(place: Place): AsyncGenerator<WatchMessage<WatchChange<T>>, void, void> {
    const { session } = this;
    const request = { ...this.#request, ...place };
    const { prefer } = this.options;
    const options = { signal: this.#stop.signal, timeoutMs: () => this.#silenceMs(), prefer };
    try {
      for await (const reply of session.streamOnce(rpc.watch, request, options)) {
        this.#connected();
        const message = toWatchMessage<T>(reply);
        if (message) yield message;
      }
      this.#cut(new Error('The server ended the watch'));
    } catch (error) {
      if (!this.#canResume(error)) throw error;
      this.#cut(error);
    }
  }

  #connected(): void {
    this.#connectedAt = this.session.clock.monotonic();
    this.#patienceMs = this.options.reconnectForMs ?? defaultReconnectForMs;
    this.#backoff.reset();
    this.#isCut = false;
  }

  /**
   * An idle watch receives heartbeats, so silence is an error; only initial records may take
   * longer.
   */
  #silenceMs(): number {
    return this.#initial?.isOpen ? Infinity : 2 * this.#heartbeatMs + 10_000;
  }

  #canResume(error: unknown): error is CallRefusal {
    if (this.#stop.signal.aborted || !(error instanceof CallRefusal)) return false;
    if (this.session.closing.aborted) throw connectionClosed();
    const waitedMs = this.session.clock.monotonic() - this.#connectedAt;
    if (waitedMs > this.#patienceMs) return false;
    const isSilent = error.grpcCode === 'DEADLINE_EXCEEDED' && !error.isAnswer;
    // The server may not have detected yet that the previous watch is closed.
    return isSilent || isPassing(error) || error.code === 'WATCH_LIMIT';
  }

  #cut(reason: Error): void {
    if (!this.#isCut) this.options.onCut?.(reason);
    this.#isCut = true;
  }
}
