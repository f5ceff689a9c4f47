import type { DaemonSchema } from '@millrace/contract/daemon';
import type { QueryClient } from '@tanstack/react-query';
import { authorizedFetch } from './client.js';
import { EventParser } from '@millrace/client';
import { applyEvents } from './live-cache.js';
import { Store } from './store.js';
import { tokenStore } from './token.js';

export type LiveState = 'connecting' | 'live' | 'lost';

/** The daemon sends at least a comment every 15 seconds. */
const silenceMs = 40_000;
/** Events are applied in batches, so that a burst costs one redraw. */
const batchMs = 80;

export const liveStore = new Store<LiveState>('connecting');

/** Reads the daemon's event stream while the page is open, and reconnects when it breaks. */
export function followEvents(client: QueryClient): () => void {
  const stop = new AbortController();
  const batch = createBatcher(client);
  void (async () => {
    let lastId: string | undefined;
    for (let failures = 0; !stop.signal.aborted;) {
      try {
        await readStream(stop.signal, lastId, {
          onOpen: () => {
            failures = 0;
            const wasLost = liveStore.value === 'lost';
            liveStore.set('live');
            // Events may be missing after a reconnect, so everything is read again.
            if (wasLost) void client.invalidateQueries();
          },
          onEvent: (id, event) => {
            lastId = id ?? lastId;
            batch.add(event);
          },
        });
      } catch {
        // The loop reconnects, and the page shows that it is not live.
      }
      if (stop.signal.aborted) return;
      // Without events the pages poll; a refetch starts that.
      const wasLive = liveStore.value === 'live';
      liveStore.set('lost');
      if (wasLive) void client.invalidateQueries();
      failures++;
      await pause(Math.min(1000 * 2 ** Math.min(failures - 1, 4), 10_000), stop.signal);
    }
  })();
  return () => {
    stop.abort();
    batch.clear();
  };
}

interface StreamListener {
  onOpen(): void;
  onEvent(id: string | undefined, event: DaemonSchema<'Event'>): void;
}

async function readStream(
  stop: AbortSignal,
  lastId: string | undefined,
  { onOpen, onEvent }: StreamListener,
): Promise<void> {
  const silence = new AbortController();
  const signal = AbortSignal.any([stop, silence.signal]);
  const headers: Record<string, string> = { accept: 'text/event-stream' };
  if (lastId !== undefined) headers['last-event-id'] = lastId;
  let timer = setTimeout(() => silence.abort(), silenceMs);
  try {
    const response = await authorizedFetch('/api/v1/events', { headers, signal });
    if (!response.ok || !response.body) return;
    onOpen();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), silenceMs);
      for (const { id, data } of parser.push(value)) {
        onEvent(id, JSON.parse(data) as DaemonSchema<'Event'>);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

function createBatcher(client: QueryClient) {
  let events: DaemonSchema<'Event'>[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    const now = events;
    events = [];
    applyEvents(client, now);
  };
  return {
    add(event: DaemonSchema<'Event'>): void {
      events.push(event);
      timer ??= setTimeout(flush, batchMs);
    },
    clear(): void {
      clearTimeout(timer);
    },
  };
}

/**
 * Waits, but ends early when the page becomes visible or a token is entered. While a token is
 * required it does not end: an attempt would fail, and the daemon counts failed attempts.
 */
function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      if (tokenStore.isLoginRequired() && !stop.aborted) return;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisible);
      window.removeEventListener('online', end);
      stop.removeEventListener('abort', end);
      unsubscribe();
      resolve();
    };
    const onVisible = () => {
      if (document.visibilityState === 'visible') end();
    };
    const timer = setTimeout(end, ms);
    const unsubscribe = tokenStore.subscribe(end);
    document.addEventListener('visibilitychange', onVisible);
    window.addEventListener('online', end);
    stop.addEventListener('abort', end);
  });
}
