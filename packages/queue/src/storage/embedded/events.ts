import type { RowReader, RowWriter } from '@millrace/engine';
import {
  type EventDetail,
  type EventPage,
  type EventPosition,
  eventRetentionMs,
  eventsRecordedMs,
  eventTypes,
  maxEvents,
  renewEventsMs,
  type TaskEvent,
} from '../port/events.js';
import { kinds, nameKey, timeKey } from './keys.js';
import { encodeJson } from './queue-state.js';

type StoredEvent = [
  type: number,
  at: number,
  queue: string,
  taskId: string,
  handlerRef: string,
  attempt: number,
  detail: EventDetail | 0,
];

interface StoredState {
  next: number;
  until: number;
  floor: number;
}

const stateKey = nameKey(kinds.meta, 'events');
/** Old rows are looked for in one of this many writes. */
const writesPerTrim = 16;
const maxTrimmed = 64;

/**
 * Records the events of each commit in one row of that commit. Events are numbered; the key of a row
 * is the number of its first event. Numbers of commits that failed are left out.
 */
export class EventRecorder {
  #next = 1;
  /** Recording ends at this time. */
  until = 0;
  /** Positions below this one are stale. */
  #floor = 0;
  #writes = 0;

  /** Continues the log of an earlier process. */
  load(rows: RowReader): void {
    const bytes = rows.get(stateKey);
    if (!bytes) return;
    const state = JSON.parse(bytes.toString()) as StoredState;
    this.until = state.until;
    const [first] = rows.range({ ...allEvents, limit: 1 });
    this.#floor = Math.max(state.floor, first ? numberOf(first.key) - 1 : 0);
    const last = lastUpTo(rows, maxNumber);
    this.#next = Math.max(state.next, last ? numberOf(last.key) + eventsIn(last.value).length : 0);
  }

  start(rows: RowWriter, now: number): EventPosition {
    if (now >= this.until) {
      // What happened since the recording ended is in no row.
      this.#floor = this.#next++;
    }
    if (this.until < now + renewEventsMs) {
      this.until = now + eventsRecordedMs;
      this.#writeState(rows);
    }
    return [this.#next - 1, 0];
  }

  write(rows: RowWriter, events: readonly TaskEvent[]): void {
    const stored = events.map(toStored);
    rows.put(timeKey(kinds.event, this.#next), encodeJson(stored));
    this.#next += events.length;
    if (++this.#writes % writesPerTrim === 0) this.trim(rows, events[0]!.at);
  }

  /** Whether `trim` has something to do although nothing is recorded. */
  hasLeftovers(rows: RowReader, now: number): boolean {
    return now >= this.until && lastUpTo(rows, maxNumber) !== undefined;
  }

  /** Removes some of the rows that are no longer kept. */
  trim(rows: RowWriter, now: number): void {
    const isOver = now >= this.until;
    const old: Buffer[] = [];
    let floor = this.#floor;
    for (const { key, value } of rows.range({ ...allEvents, limit: maxTrimmed })) {
      const events = eventsIn(value);
      const last = numberOf(key) + events.length - 1;
      const isOld = last < this.#next - maxEvents || events[0]![1] < now - eventRetentionMs;
      if (!isOver && !isOld && last > this.#floor) break;
      old.push(key);
      floor = Math.max(floor, last);
    }
    if (old.length === 0) return;
    for (const key of old) rows.remove(key);
    this.#floor = floor;
    if (isOver) this.#writeState(rows);
  }

  read(rows: RowReader, after: number, limit: number): EventPage | 'stale' {
    if (after < this.#floor || after >= this.#next) return 'stale';
    const first = lastUpTo(rows, after + 1);
    const start = first ? first.key : timeKey(kinds.event, after + 1);
    const events: EventPage['events'] = [];
    for (const { key, value } of rows.range({ start, end: allEvents.end })) {
      const number = numberOf(key);
      eventsIn(value).forEach((stored, i) => {
        if (number + i > after) events.push({ event: toEvent(stored), position: [number + i, 0] });
      });
      if (events.length >= limit) break;
    }
    return { events, next: events.at(-1)?.position ?? [after, 0] };
  }

  #writeState(rows: RowWriter): void {
    const state: StoredState = { next: this.#next, until: this.until, floor: this.#floor };
    rows.put(stateKey, encodeJson(state));
  }
}

const maxNumber = 2 ** 48 - 1;
const allEvents = { start: timeKey(kinds.event, 0), end: Buffer.of(kinds.event + 1) };

/** The last row whose first event has at most this number. */
function lastUpTo(rows: RowReader, number: number) {
  const range = { start: timeKey(kinds.event, number), end: Buffer.of(kinds.event) };
  for (const row of rows.range({ ...range, reverse: true, limit: 1 })) return row;
  return undefined;
}

function numberOf(key: Buffer): number {
  return key.readUIntBE(1, 6);
}

function eventsIn(value: Buffer): StoredEvent[] {
  return JSON.parse(value.toString()) as StoredEvent[];
}

function toStored(event: TaskEvent): StoredEvent {
  const { type, at, queue, taskId, handlerRef, attempt, detail } = event;
  const isPlain = Object.keys(detail).length === 0;
  return [eventTypes.indexOf(type), at, queue, taskId, handlerRef, attempt, isPlain ? 0 : detail];
}

function toEvent([type, at, queue, taskId, handlerRef, attempt, detail]: StoredEvent): TaskEvent {
  return { type: eventTypes[type]!, at, queue, taskId, handlerRef, attempt, detail: detail || {} };
}
