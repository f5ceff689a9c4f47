import {
  type EventDetail,
  type EventPage,
  type EventPosition,
  eventRetentionMs,
  eventsRecordedMs,
  type TaskEventType,
} from '../../../src/storage/port/events.js';
import type { TaskRow } from '../../../src/storage/port/store-parts.js';

/** The event log of the memory store. */
export class EventList {
  readonly #events: EventPage['events'] = [];
  #until = 0;
  #floor = 0;
  #count = 0;

  start(now: number): EventPosition {
    if (now >= this.#until) this.#floor = ++this.#count;
    this.#until = now + eventsRecordedMs;
    return [this.#count, 0];
  }

  read({ after, limit }: { after: EventPosition; limit: number }): EventPage | 'stale' {
    if (after[0] < this.#floor || after[0] > this.#count) return 'stale';
    const events = this.#events.filter(({ position }) => position[0] > after[0]).slice(0, limit);
    return { events, next: events.at(-1)?.position ?? after };
  }

  trim(now: number): void {
    while (this.#events[0] && this.#events[0].event.at < now - eventRetentionMs) {
      [this.#floor] = this.#events.shift()!.position;
    }
  }

  /** False: nothing is recorded. */
  note(type: TaskEventType, row: TaskRow, at: number, detail: EventDetail): boolean {
    if (at >= this.#until) return false;
    const { queue, id: taskId, handlerRef, attempt } = row;
    const event = { type, at, queue, taskId, handlerRef, attempt, detail };
    this.#events.push({ event, position: [++this.#count, 0] });
    return true;
  }
}
