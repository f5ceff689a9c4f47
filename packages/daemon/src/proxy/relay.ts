import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';

export interface RelayParts {
  clock: Clock;
  log: Log;
  /** Aborted when the daemon stops, to end endless streams. */
  ending: AbortSignal;
}

/** Idle timeout and maximum size of a response that is not a stream of changes. */
const idleTimeoutMs = 35_000;
const maxBytes = 64 * 1_048_576;

// Response headers that the dashboard uses; others are dropped.
const passedBack = ['content-type', 'etag', 'retry-after', 'idempotent-replayed'];
const endless = new Set(['application/x-ndjson', 'text/event-stream']);

/**
 * Streams a response to the caller. When the upstream aborts, so does the response, so that the
 * caller does not take a truncated body for a complete one.
 */
export async function relay(
  answer: IncomingMessage,
  response: ServerResponse,
  { clock, log, ending }: RelayParts,
): Promise<void> {
  const { 'content-type': contentType = '' } = answer.headers;
  const isEndless = endless.has(contentType.split(';')[0]!.trim().toLowerCase());
  response.statusCode = answer.statusCode!;
  for (const name of passedBack) {
    const value = answer.headers[name];
    if (value !== undefined) response.setHeader(name, value);
  }
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('cache-control', 'no-store');
  if (response.req.method === 'HEAD') {
    answer.destroy();
    response.end();
    return;
  }
  // Send the headers at once: an idle watch has no data yet.
  response.flushHeaders();
  const pieces = isEndless ? untilEnding(answer, ending) : bounded(answer, clock);
  try {
    await pipeline(pieces, response);
  } catch (error) {
    // Usually the caller closed the page.
    log.debug({ err: error }, 'failed to relay response');
  } finally {
    answer.destroy();
  }
}

async function* untilEnding(
  answer: IncomingMessage,
  ending: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const stop = () => answer.destroy();
  ending.addEventListener('abort', stop);
  try {
    if (ending.aborted) return;
    yield* answer as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (!ending.aborted) throw error;
  } finally {
    ending.removeEventListener('abort', stop);
  }
}

async function* bounded(answer: IncomingMessage, clock: Clock): AsyncGenerator<Uint8Array> {
  let length = 0;
  const stop = () => answer.destroy(new Error(`it paused for ${idleTimeoutMs / 1000} s`));
  let timer = clock.after(idleTimeoutMs, stop);
  try {
    for await (const chunk of answer as AsyncIterable<Uint8Array>) {
      timer.cancel();
      length += chunk.byteLength;
      if (length > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes`);
      yield chunk;
      timer = clock.after(idleTimeoutMs, stop);
    }
  } finally {
    timer.cancel();
  }
}
