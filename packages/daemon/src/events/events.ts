import type { Database, WatchChange, WatchMessage } from '@millrace/engine';
import type { Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import type { ServerEvent } from '@millrace/kit/http';
import { formatTimestamp } from '@millrace/kit/units';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { rowOf, type Backend } from '../core/backend.js';

export interface EventsParts {
  database: Database;
  clock: Clock;
}

/** One stream of events, from the requested position. */
export interface EventFlow {
  /** Start position of a stream without an id, for a reconnect before the first event. */
  startId: string | undefined;
  events: AsyncGenerator<ServerEvent, void, void>;
}

type Message = WatchMessage<WatchChange>;

/**
 * Streams changes from the database's change log. Nothing is buffered per reader: the log is read
 * with backpressure, and a reader that falls behind the log's retention gets `stream.reset`.
 */
export class Events {
  constructor(private readonly parts: EventsParts) {}

  /** Resumes after the given event id; without one it starts now. */
  follow(lastId: string | undefined, signal: AbortSignal): EventFlow {
    if (lastId === undefined || lastId === '') {
      const here = this.#here();
      return { startId: idOf(here), events: this.#run(here, false, signal) };
    }
    const found = this.#find(lastId);
    const events = this.#run(found ?? this.#here(), found === undefined, signal);
    return { startId: undefined, events };
  }

  #here(): Position {
    const { seq, chainHash } = this.parts.database.logPosition;
    return { seq, mark: chainHash.high };
  }

  /** The position of an id; undefined when it is too old or unknown. */
  #find(id: string): Position | undefined {
    const position = positionOf(id);
    const { logPosition: log, watches } = this.parts.database;
    if (!position || position.seq > log.seq) return undefined;
    try {
      const isOurs = watches.chainAt(position.seq).high === position.mark;
      // A position within a commit needs the commit for the rest of its changes.
      const isWhole = position.index === undefined || position.seq >= log.oldestSeq;
      return isOurs && isWhole ? position : undefined;
    } catch (error) {
      if (isCompacted(error)) return undefined;
      throw error;
    }
  }

  async *#run(
    from: Position,
    isReset: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<ServerEvent, void, void> {
    let position = from;
    if (isReset) yield this.#reset(position);
    for (;;) {
      try {
        yield* this.#after(position, signal);
        return;
      } catch (error) {
        if (!isCompacted(error)) throw error;
        position = this.#here();
        yield this.#reset(position);
      }
    }
  }

  async *#after(
    { seq, index }: Position,
    signal: AbortSignal,
  ): AsyncGenerator<ServerEvent, void, void> {
    const startSeq = index === undefined ? seq + 1 : seq;
    const watch = this.parts.database.watch({ startSeq, signal });
    for await (const message of watch) {
      if (message.kind !== 'changes') continue;
      const seenUpTo = message.seq === seq && index !== undefined ? index : -1;
      yield* this.#eventsOf(message, seenUpTo);
    }
  }

  /** The events of one commit; the id of the last one covers the whole commit. */
  #eventsOf({ seq, changes, chainHash, committedAt }: Message, seenUpTo: number): ServerEvent[] {
    const now = this.parts.clock.now();
    const mark = chainHash.high;
    const ts = formatTimestamp(committedAt!.getTime());
    const visible = changes.flatMap((change, index) => {
      const each = publicChangeOf(change, now);
      return each ? [{ ...each, index }] : [];
    });
    return visible.flatMap(({ index, type, key, data }, at) => {
      if (index <= seenUpTo) return [];
      const isLast = at === visible.length - 1;
      const id = idOf(isLast ? { seq, mark } : { seq, index, mark });
      return [{ id, event: type, data: { id, type, ts, key, data } }];
    });
  }

  #reset(position: Position): ServerEvent {
    const id = idOf(position);
    const ts = formatTimestamp(this.parts.clock.now());
    const data: Event = { id, type: 'stream.reset', ts, key: null, data: null };
    return { id, event: data.type, data };
  }
}

function isCompacted(error: unknown): boolean {
  return error instanceof Refusal && error.code === 'WATCH_COMPACTED';
}

export type Event = DaemonSchema<'Event'>;
export type EventType = Event['type'];

/** A change as published in the event stream. */
export interface PublicChange {
  type: EventType;
  key: string | null;
  data: unknown;
}

/** Collection whose records change when a report has new figures, keyed by report. */
export const reportsCollection = 'reports';

interface Kind {
  changed: EventType;
  /** Absent when removals are not published. */
  removed?: EventType;
  /** The only published key. */
  only?: string;
  /** Maps stored data to API data, where they differ. */
  show?: (data: unknown, now: number) => unknown;
}

const kinds: Readonly<Record<string, Kind>> = {
  sessions: { changed: 'session.changed', removed: 'session.removed' },
  pipelines: { changed: 'pipeline.changed', removed: 'pipeline.removed' },
  plans: { changed: 'plan.changed', removed: 'plan.removed' },
  notes: { changed: 'note.changed', removed: 'note.removed' },
  questions: {
    changed: 'question.changed',
    removed: 'question.removed',
    show: (data) => (data as { question: unknown }).question,
  },
  branches: { changed: 'branch.changed', removed: 'branch.removed' },
  settings: { changed: 'settings.changed', only: 'settings' },
  metrics: { changed: 'metrics.sampled', only: 'latest' },
  backends: {
    changed: 'backend.changed',
    removed: 'backend.removed',
    show: (data, now) => rowOf(data as Backend, now),
  },
};

const reports: Readonly<Record<string, EventType>> = {
  usage: 'usage.changed',
  savings: 'savings.changed',
  spend: 'spend.changed',
};

/** The change as an event; undefined when it is internal. */
export function publicChangeOf(change: WatchChange, now: number): PublicChange | undefined {
  const { collection, record } = change;
  if (collection === reportsCollection) {
    const type = reports[record.key];
    return type && { type, key: null, data: null };
  }
  const kind = Object.hasOwn(kinds, collection) ? kinds[collection] : undefined;
  if (!kind || (kind.only !== undefined && kind.only !== record.key)) return undefined;
  if (!('data' in record)) {
    return kind.removed && { type: kind.removed, key: record.key, data: null };
  }
  const data = kind.show ? kind.show(record.data, now) : record.data;
  // A metrics sample has no id.
  return { type: kind.changed, key: collection === 'metrics' ? null : record.key, data };
}

/**
 * A position in the stream: after a commit of the change log, or after one of its changes. `mark`
 * is a hash of the history up to there, so that ids of another database are rejected.
 */
export interface Position {
  seq: number;
  /** Which change of the commit; undefined: all of them. */
  index?: number | undefined;
  mark: number;
}

const pattern = /^(\d{1,15})(?:\.(\d{1,9}))?-([0-9a-f]{8})$/;

/** `18245-3f9a01c2`, or `18245.3-3f9a01c2` where more changes of the same commit follow. */
export function idOf({ seq, index, mark }: Position): string {
  const which = index === undefined ? '' : `.${index}`;
  return `${seq}${which}-${mark.toString(16).padStart(8, '0')}`;
}

export function positionOf(id: string): Position | undefined {
  const [, seq, index, mark] = pattern.exec(id) ?? [];
  if (seq === undefined || mark === undefined) return undefined;
  const position = { seq: Number(seq), mark: Number.parseInt(mark, 16) };
  return index === undefined ? position : { ...position, index: Number(index) };
}
