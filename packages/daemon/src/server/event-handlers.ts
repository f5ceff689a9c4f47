import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import { eventStream, type Handlers } from '@millrace/kit/http';
import type { EventFlow } from '../events/index.js';
import type { DaemonContext } from '../operations/context.js';
import type { Caller } from './access/authenticator.js';

const reconnectMs = 2_000;
/** At shutdown, how long a client has to read what was already sent. */
const farewellMs = 1_000;

export function eventHandlers(
  context: Pick<DaemonContext, 'events'>,
  clock: Clock,
): Handlers<Pick<DaemonOperations, 'streamEvents'>, Caller> {
  return {
    streamEvents: ({ headers, query, signal, ending, exchange }) => {
      const lastId = headers['Last-Event-ID'] ?? query.last_event_id;
      const over = AbortSignal.any([signal, ending]);
      const { socket } = exchange.peer;
      const leave = () => {
        // A client that does not read would otherwise delay shutdown until the drain timeout.
        if (ending.aborted) {
          clock.after(farewellMs, () => socket.writableLength > 0 && socket.destroy());
        }
      };
      over.addEventListener('abort', leave, { once: true });
      const flow = context.events.follow(lastId, over);
      return {
        status: 200,
        contentType: 'text/event-stream',
        content: textOf(flow, { clock, signals: [over] }),
        // Disables response buffering in nginx, which would delay every event.
        headers: { 'x-accel-buffering': 'no' },
      };
    },
  };
}

async function* textOf(
  { startId, events }: EventFlow,
  options: Parameters<typeof eventStream>[1],
): AsyncGenerator<string> {
  // An id without data dispatches no event, but sets the client's Last-Event-ID.
  yield `retry: ${reconnectMs}\n${startId === undefined ? '' : `id: ${startId}\n`}\n`;
  yield* eventStream(events, options);
}
