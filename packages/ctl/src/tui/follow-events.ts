import { EventParser } from '@millrace/client';
import { systemClock } from '@millrace/kit/clock';
import type { DaemonPlace } from '../daemon/locate.js';
import { reasonOf } from '../base/exchange.js';
import { restUntil } from '../queue/waiting.js';
import type { LiveData } from './live-data.js';

const reconnectMs = 1_000;
/** A silent stream sends a comment every 15 seconds. */
const maxSilenceMs = 40_000;

/** Follows the events of the daemon and reconnects until `signal` is aborted. */
export async function followEvents(
  place: DaemonPlace,
  live: LiveData,
  signal: AbortSignal,
): Promise<void> {
  let lastId: string | undefined;
  while (!signal.aborted) {
    let reason = 'the daemon closed the connection';
    try {
      for await (const event of eventsOf(place, lastId, live, signal)) {
        lastId = event.id ?? lastId;
        live.apply(event.type);
      }
    } catch (error) {
      if (signal.aborted) return;
      reason = reasonOf(error instanceof TypeError ? error.cause : error);
    }
    live.disconnected(reason);
    await restUntil(reconnectMs, signal);
  }
}

async function* eventsOf(
  { url, token }: DaemonPlace,
  lastId: string | undefined,
  live: LiveData,
  signal: AbortSignal,
) {
  const silent = new AbortController();
  const limit = () => systemClock.after(maxSilenceMs, () => silent.abort());
  let timer = limit();
  try {
    const response = await fetch(`${url}/api/v1/events`, {
      headers: {
        accept: 'text/event-stream',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
      },
      signal: AbortSignal.any([signal, silent.signal]),
      // A redirect is a failure. Not 'error', with which Node does not abort the body.
      redirect: 'manual',
    });
    if (!response.ok || !response.body) throw new Error(`HTTP ${response.status}`);
    live.connected();
    // Without an id the stream starts now, so what came before must be read.
    if (lastId === undefined) live.readAll();
    const parser = new EventParser();
    const decoder = new TextDecoder();
    for await (const chunk of response.body) {
      timer.cancel();
      timer = limit();
      yield* parser.push(decoder.decode(chunk as Uint8Array, { stream: true }));
    }
  } finally {
    timer.cancel();
  }
}
