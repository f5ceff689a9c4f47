import type { QueueSchema } from '@millrace/contract/queue';
import type { FieldError } from '@millrace/kit/errors';
import {
  type EventPosition,
  eventTypes,
  type TaskEvent,
  type TaskEventType,
} from '../storage/port/events.js';
import { timeOrNull, timeText } from './base/bodies.js';
import {
  hasGrant,
  type Principal,
  type QueueContext,
  requireGrantOn,
  requireQueue,
} from './base/context.js';
import { staleCursor } from './base/cursors.js';
import { failQuery } from './base/refusal.js';

export interface EventsRequest {
  cursor?: string | undefined;
  queue?: string | undefined;
  types?: readonly string[] | undefined;
  /** Checks the token again: a stream may outlive it. */
  identify: () => Principal;
  /** Ends the stream. */
  signal: AbortSignal;
}

type WireEvent = QueueSchema<'TaskEvent'>;

/** Events to send, and the cursor after them; there may be none. */
export interface EventBatch {
  events: WireEvent[];
  cursor: string;
}

const maxPerPage = 500;
/** Hints of the store may be lost, and the recording must be renewed. */
const maxWaitMs = 30_000;

/** Opens a stream of events; its first batch has only the cursor. */
export async function openEvents(
  context: QueueContext,
  request: EventsRequest,
): Promise<AsyncGenerator<EventBatch>> {
  const { store, clock } = context;
  const { cursor = '', queue } = request;
  const types = readTypes(request.types);
  const after = readCursor(cursor);
  if (queue !== undefined) {
    requireGrantOn(request.identify(), queue);
    await requireQueue(context, queue);
  }
  const now = await store.startEvents(clock.now());
  // Before the response, so that a stale cursor is an error and not a stream that ends.
  if (after && (await store.readEvents({ after, limit: 1 })) === 'stale') throw staleCursor();
  return follow(context, { ...request, types, start: after ?? now });
}

async function* follow(
  { store, clock }: QueueContext,
  request: Omit<EventsRequest, 'types'> & {
    types: ReadonlySet<TaskEventType> | undefined;
    start: EventPosition;
  },
): AsyncGenerator<EventBatch> {
  const { queue, types, signal, identify } = request;
  let position = request.start;
  let wake = () => {};
  let hasNews = true;
  const stops = [
    store.onEvents(() => {
      hasNews = true;
      wake();
    }),
  ];
  const end = () => wake();
  signal.addEventListener('abort', end);
  try {
    yield { events: [], cursor: cursorOf(position) };
    while (!signal.aborted) {
      const caller = identify();
      hasNews = false;
      const page = await store.readEvents({ after: position, limit: maxPerPage });
      if (page === 'stale') throw staleCursor();
      const wanted = page.events.filter(
        ({ event }) =>
          (queue === undefined || event.queue === queue) &&
          (!types || types.has(event.type)) &&
          hasGrant(caller, event.queue),
      );
      const hasMoved = page.events.length > 0;
      position = page.next;
      const events = wanted.map((each) => toWire(each.event, each.position));
      if (hasMoved) yield { events, cursor: cursorOf(position) };
      if (hasMoved || hasNews || signal.aborted) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
        const timer = clock.after(maxWaitMs, resolve);
        stops[1] = () => timer.cancel();
        if (hasNews || signal.aborted) resolve();
      });
      stops[1]?.();
      await store.startEvents(clock.now());
    }
  } finally {
    for (const stop of stops) stop();
    signal.removeEventListener('abort', end);
  }
}

function readTypes(given: readonly string[] = []): ReadonlySet<TaskEventType> | undefined {
  const types = given.flatMap((text) => text.split(',')).filter((type) => type !== '');
  const known: readonly string[] = eventTypes;
  const unknown = types.find((type) => !known.includes(type));
  if (unknown !== undefined) {
    const message = `has "${unknown}"; known are ${eventTypes.join(', ')}`;
    throw failQuery([{ pointer: '/types', message }]);
  }
  return types.length === 0 ? undefined : new Set(types as TaskEventType[]);
}

function readCursor(text: string): EventPosition | undefined {
  if (text === '') return undefined;
  const parts = /^(\d{1,15})\.(\d{1,16})$/.exec(text);
  if (parts) return [Number(parts[1]), Number(parts[2])];
  const fault: FieldError = {
    pointer: '/cursor',
    message: 'is not the cursor of an event; leave it out to start now',
  };
  throw failQuery([fault]);
}

function cursorOf([first, second]: EventPosition): string {
  return `${first}.${second}`;
}

function toWire(event: TaskEvent, position: EventPosition): WireEvent {
  const { type, at, queue, taskId, handlerRef, attempt, detail } = event;
  const { error, nextAttemptAt, deadReason, progress, breaker } = detail;
  return {
    cursor: cursorOf(position),
    type,
    at: timeText(at),
    queue,
    task_id: taskId,
    handler_ref: handlerRef,
    attempt,
    ...(error && { error_type: error.errorType, message: error.message }),
    ...(type === 'failed' && { next_attempt_at: timeOrNull(nextAttemptAt ?? null) }),
    ...(deadReason && { dead_reason: deadReason }),
    ...(breaker && { state: breaker.state, next_probe_at: timeOrNull(breaker.nextProbeAt) }),
    ...(progress && { progress: { ...progress, at: timeText(progress.at) } }),
  };
}
