import { ApiError, EventParser, type ClientOptions } from '@millrace/client';
import type { QueueSchema } from '@millrace/contract/queue';
import { fromWire, type Camel } from './names.js';
import { pause } from './pause.js';

export type QueueEvent = Camel<QueueSchema<'TaskEvent'>>;
export type QueueEventType = QueueSchema<'TaskEvent'>['type'];

export interface EventOptions {
  /** Only these; all if absent. */
  types?: readonly QueueEventType[];
  queue?: string;
  /** The cursor of the last event that you have; from now on if absent. */
  after?: string;
  signal?: AbortSignal;
}

export interface EventQuery {
  types?: readonly QueueEventType[] | undefined;
  queue?: string | undefined;
  cursor?: string | undefined;
}

/** Events of the wire, and the cursor after them; there may be none. */
export interface EventBatch {
  events: readonly QueueSchema<'TaskEvent'>[];
  cursor: string;
}

/** Opens a stream whose first batch, without events, says that it is open. */
export type OpenEvents = (query: EventQuery, signal: AbortSignal) => AsyncIterable<EventBatch>;

/** Events as they happen: `for await (const event of queue.events())`. Leaving the loop ends it. */
export class QueueEvents implements AsyncIterable<QueueEvent> {
  /** Resolves when nothing that happens from now on is missed. */
  readonly ready: Promise<void>;
  /** Of the last event that was given out: `after` for the next time. */
  cursor: string | undefined;
  readonly #end = new AbortController();
  readonly #batches: AsyncIterator<EventBatch>;
  readonly #first: Promise<IteratorResult<EventBatch>>;

  constructor(
    open: OpenEvents,
    { types, queue, after, signal }: EventOptions & { signal: AbortSignal },
  ) {
    const end = () => this.#end.abort(signal.reason);
    signal.addEventListener('abort', end);
    this.#end.signal.addEventListener('abort', () => signal.removeEventListener('abort', end));
    if (signal.aborted) end();
    this.cursor = after;
    const query = { types, queue, cursor: after };
    this.#batches = open(query, this.#end.signal)[Symbol.asyncIterator]();
    // Begun now, so that events are not missed before the first one is read.
    this.#first = this.#batches.next();
    this.ready = this.#first.then(() => undefined);
    // Reported when it is iterated.
    this.ready.catch(() => undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<QueueEvent, void, void> {
    try {
      for (let next = await this.#first; !next.done; next = await this.#batches.next()) {
        const { events, cursor } = next.value;
        for (const event of events) {
          this.cursor = event.cursor;
          yield fromWire(event);
        }
        this.cursor = cursor;
      }
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#end.abort();
  }
}

const firstRetryMs = 100;
const maxRetryMs = 5_000;

/** The events of a server by `GET /v1/events`. */
export function restEvents(
  { urls, token }: { urls: readonly string[]; token: ClientOptions['token'] },
  query: EventQuery,
  signal: AbortSignal,
): AsyncIterable<EventBatch> {
  let tries = 0;
  const open: OpenEvents = (from) => {
    const url = urls[tries++ % urls.length]!.replace(/\/+$/, '');
    return readEvents(url, token, from, signal);
  };
  return resumedEvents(open, query, signal);
}

/** Opens the stream again after a lost connection, behind the last event. */
export async function* resumedEvents(
  open: OpenEvents,
  query: EventQuery,
  signal: AbortSignal,
): AsyncGenerator<EventBatch, void, void> {
  let { cursor } = query;
  let retryMs = firstRetryMs;
  while (!signal.aborted) {
    try {
      for await (const batch of open({ ...query, cursor }, signal)) {
        ({ cursor } = batch);
        retryMs = firstRetryMs;
        yield batch;
      }
    } catch (error) {
      if (signal.aborted) return;
      const isFinal = error instanceof ApiError && error.status !== 429 && error.status < 500;
      if (isFinal) throw error;
    }
    await pause(retryMs, signal);
    retryMs = Math.min(retryMs * 2, maxRetryMs);
  }
}

async function* readEvents(
  url: string,
  token: ClientOptions['token'],
  { types, queue, cursor }: EventQuery,
  signal: AbortSignal,
): AsyncGenerator<EventBatch, void, void> {
  let reached: string | undefined;
  const search = new URLSearchParams();
  if (types) search.set('types', types.join(','));
  if (queue !== undefined) search.set('queue', queue);
  if (cursor !== undefined) search.set('cursor', cursor);
  const bearer = typeof token === 'function' ? token() : token;
  const response = await fetch(`${url}/v1/events?${search.toString()}`, {
    headers: {
      accept: 'text/event-stream, application/problem+json',
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    },
    signal,
    redirect: 'manual',
  });
  if (!response.ok || !response.body) {
    const body: unknown = await response.json().catch(() => undefined);
    throw new ApiError(response.status, body);
  }
  const parser = new EventParser();
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const events = parser
      .push(decoder.decode(chunk, { stream: true }))
      .map(({ data }) => JSON.parse(data) as QueueSchema<'TaskEvent'>);
    const { lastId } = parser;
    if (lastId !== undefined && lastId !== reached) yield { events, cursor: lastId };
    reached = lastId;
  }
}
