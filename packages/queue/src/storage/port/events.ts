import type { Verdict } from '../../core/outcome.js';
import type { BreakerPhase } from '../../core/pacing.js';
import type { DeadReason, LastError, Progress } from '../../core/task.js';

/** In the order of their stored numbers: append only. */
export const eventTypes = [
  'submitted',
  'started',
  'progress',
  'succeeded',
  'failed',
  'dead',
  'cancelled',
  'breaker',
] as const;
export type TaskEventType = (typeof eventTypes)[number];

/** Something that happened to a task, or to the circuit breaker of its handler by its end. */
export interface TaskEvent {
  type: TaskEventType;
  at: number;
  queue: string;
  taskId: string;
  handlerRef: string;
  attempt: number;
  detail: EventDetail;
}

export interface EventDetail {
  error?: LastError | null;
  nextAttemptAt?: number | null;
  deadReason?: DeadReason;
  progress?: Progress;
  breaker?: { state: BreakerPhase; nextProbeAt: number | null };
}

/** What the end of an attempt is recorded as. A failure is an event of its own, also the last. */
export function settledEvents(
  { verdict, error = null }: { verdict: Verdict; error?: LastError | null | undefined },
  nextAttemptAt: number | null,
): [TaskEventType, EventDetail][] {
  switch (verdict.kind) {
    case 'succeeded':
      return [['succeeded', {}]];
    case 'retry':
      return [['failed', { error, nextAttemptAt }]];
    case 'dead':
      return [
        ['failed', { error }],
        ['dead', { error, deadReason: verdict.reason }],
      ];
    default:
      return [];
  }
}

/** A position in the event log: everything up to it was seen. */
export type EventPosition = readonly [number, number];

export interface EventPage {
  events: { event: TaskEvent; position: EventPosition }[];
  /** Where the next page starts. */
  next: EventPosition;
}

/**
 * The event log of a store. Events are recorded while somebody reads them and for at least
 * `eventsRecordedMs` after that, so that a queue without readers pays nothing. They are written in
 * the commit of the change itself, and read in the order of commits.
 */
export interface EventLog {
  /** Records events from now on. Returns the position after the last one. */
  startEvents(now: number): Promise<EventPosition>;
  /** Events after a position; `stale` if some of them are gone or were never recorded. */
  readEvents(request: { after: EventPosition; limit: number }): Promise<EventPage | 'stale'>;
  /** Records an event that no change of a task has. Does nothing while nobody reads events. */
  noteEvent(event: TaskEvent): Promise<void>;
  /** Subscribes to hints that there may be new events. Returns the unsubscribe function. */
  onEvents(listener: () => void): () => void;
}

/** Events are kept this long, unless there are more than `maxEvents`. */
export const eventRetentionMs = 600_000;
export const maxEvents = 100_000;
/** Recording goes on this long after the last reader. */
export const eventsRecordedMs = 2 * eventRetentionMs;
/** A reader renews the recording when less than this is left of it. */
export const renewEventsMs = eventRetentionMs + 300_000;
