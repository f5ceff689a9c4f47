import type { Clock, Timer } from '../base/clock-and-random.js';

/**
 * One server-sent event. `data` that is not text is sent as JSON; without data it only sets what the
 * client sends back as `Last-Event-ID`.
 */
export interface ServerEvent {
  /** What the client sends back as `Last-Event-ID` when it reconnects. */
  id?: string;
  event?: string;
  data?: unknown;
}

export interface EventStreamOptions {
  clock: Clock;
  /** Any of these ends the stream: client disconnected, server draining. */
  signals: readonly AbortSignal[];
  /** Interval of heartbeat comments, which keep the connection open through proxies. */
  heartbeatMs?: number;
}

/** The text of a `text/event-stream` response. */
export async function* eventStream(
  events: AsyncIterable<ServerEvent>,
  { clock, signals, heartbeatMs = 15_000 }: EventStreamOptions,
): AsyncGenerator<string> {
  const over = AbortSignal.any([...signals]);
  const source = events[Symbol.asyncIterator]();
  const ended = new Promise<'ended'>((resolve) => {
    if (over.aborted) resolve('ended');
    over.addEventListener('abort', () => resolve('ended'), { once: true });
  });
  // Sent so that the client sees that the stream is open.
  yield ': open\n\n';
  let next = source.next();
  try {
    for (;;) {
      const beat = heartbeat(clock, heartbeatMs);
      const outcome = await Promise.race([next, ended, beat.due]);
      beat.timer.cancel();
      if (outcome === 'ended') return;
      if (outcome === 'beat') {
        yield ': beat\n\n';
        continue;
      }
      if (outcome.done) return;
      yield eventText(outcome.value);
      next = source.next();
    }
  } finally {
    // Not awaited: a generator that waits for its next event cannot return immediately.
    next.catch(() => undefined);
    source.return?.()?.catch(() => undefined);
  }
}

function heartbeat(clock: Clock, afterMs: number): { due: Promise<'beat'>; timer: Timer } {
  let timer: Timer | undefined;
  const due = new Promise<'beat'>((resolve) => {
    timer = clock.after(afterMs, () => resolve('beat'));
  });
  return { due, timer: timer! };
}

/** One event in the format of the stream. */
export function eventText({ id, event, data }: ServerEvent): string {
  let out = '';
  if (id !== undefined) out += `id: ${oneLine(id)}\n`;
  if (data === undefined) return `${out}\n`;
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  if (event !== undefined) out += `event: ${oneLine(event)}\n`;
  for (const line of text.split(/\r\n|\r|\n/)) out += `data: ${line}\n`;
  return `${out}\n`;
}

function oneLine(text: string): string {
  return text.replace(/[\r\n\0]/g, ' ');
}
