import type { JsonObject } from '@bufbuild/protobuf';
import type { QueueOperations } from '@millrace/contract/queue';
import { eventStream, type Handlers, type ServerEvent } from '@millrace/kit/http';
import type { Principal, QueueContext } from '../operations/base/context.js';
import type { Load } from '../operations/base/limits.js';
import { type EventBatch, openEvents } from '../operations/events.js';
import { backupQueues } from '../operations/queues.js';
import { textIn, type StreamedCall } from './grpc-calls.js';

export interface EventHandlerOptions {
  load: Pick<Load, 'idle' | 'enter' | 'leave'>;
  identify: (authorization: string | undefined) => Principal;
}

/** `GET /v1/events`. */
export function eventHandlers(
  context: QueueContext,
  { load, identify }: EventHandlerOptions,
): Handlers<Pick<QueueOperations, 'streamEvents'>, Principal> {
  return {
    streamEvents: async ({ query, headers, signal, ending, exchange }) => {
      const over = AbortSignal.any([signal, ending]);
      const batches = await openEvents(context, {
        queue: query.queue,
        types: query.types,
        cursor: headers['Last-Event-ID'] ?? query.cursor ?? query.after,
        identify: () => identify(exchange.request.headers.authorization),
        signal: over,
      });
      const events = serverEvents(batches, context, load);
      return {
        status: 200,
        contentType: 'text/event-stream',
        content: eventStream(events, { clock: context.clock, signals: [over] }),
        // Disables response buffering in nginx, which would delay every event.
        headers: { 'x-accel-buffering': 'no' },
      };
    },
  };
}

/** `GET /v1/admin/backup`. */
export function backupHandlers(
  context: QueueContext,
): Handlers<Pick<QueueOperations, 'backupQueues'>, Principal> {
  return {
    backupQueues: async ({ principal, query }) => ({
      status: 200,
      contentType: 'application/octet-stream',
      content: await backupQueues(context, principal, query.since_seq),
    }),
  };
}

/** A stream that waits does not count as a request in progress. */
async function* serverEvents(
  batches: AsyncIterable<EventBatch>,
  { log }: QueueContext,
  load: Pick<Load, 'enter' | 'leave'>,
): AsyncGenerator<ServerEvent> {
  load.leave(0);
  try {
    for await (const { events, cursor } of batches) {
      for (const event of events) yield { id: event.cursor, event: event.type, data: event };
      if (events.at(-1)?.cursor !== cursor) yield { id: cursor };
    }
  } catch (error) {
    // The client reconnects and gets the error as a response.
    log.debug({ err: error }, 'event stream ended');
  } finally {
    load.enter(0);
  }
}

const maxUnsentBytes = 2 ** 20;

export interface EventCall extends StreamedCall {
  request: JsonObject;
  encode: (event: object) => Uint8Array;
}

/** The method `Events` over gRPC. */
export async function streamEvents(context: QueueContext, stream: EventCall): Promise<void> {
  const { call, request, identify, encode } = stream;
  const signal = AbortSignal.any([stream.signal, context.readiness.draining]);
  const batches = await openEvents(context, {
    cursor: textIn(request, 'cursor'),
    queue: textIn(request, 'queue') || undefined,
    types: request['types'] as string[] | undefined,
    identify,
    signal,
  });
  for await (const { events } of batches) {
    for (const event of events) call.send(encode(event));
    while (!signal.aborted && (call.unsentBytes > maxUnsentBytes || call.isCongested)) {
      await new Promise<void>((resolve) => {
        call.onSent = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
        if (call.isCongested) call.whenDrained(resolve);
      });
    }
  }
}
