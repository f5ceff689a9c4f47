import {
  request,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, vi } from 'vitest';
import type { ApiClient } from './client.js';

export type Event = DaemonSchema<'Event'>;

const patience = { timeout: 60_000, interval: 5 };

interface SourceOptions {
  lastId?: string;
  query?: string;
  headers?: OutgoingHttpHeaders;
  onEvent?: () => void;
}

/** Reads a stream of events as a browser does, without coming back by itself. */
export class EventSource {
  readonly events: Event[] = [];
  readonly comments: string[] = [];
  /** What a browser would come back with. */
  lastEventId: string | undefined;
  retryMs: number | undefined;
  isOpen = false;
  hasEnded = false;
  answer: IncomingMessage | undefined;
  readonly #request: ClientRequest;
  readonly #onEvent: (() => void) | undefined;
  #rest = '';

  constructor(url: string, { lastId, query = '', headers: more, onEvent }: SourceOptions = {}) {
    const { hostname: host, port } = new URL(url);
    const last = lastId && { 'last-event-id': lastId };
    const headers = { accept: 'text/event-stream', ...more, ...last };
    this.#onEvent = onEvent;
    this.lastEventId = lastId;
    this.#request = request({ host, port, path: `/api/v1/events${query}`, headers }, (answer) => {
      this.answer = answer;
      answer.setEncoding('utf8');
      answer.on('data', (text: string) => this.#take(text));
      answer.on('end', () => (this.hasEnded = true));
      answer.on('error', () => undefined);
    });
    this.#request.on('error', () => undefined);
    this.#request.end();
  }

  static async open(...given: ConstructorParameters<typeof EventSource>): Promise<EventSource> {
    const source = new EventSource(...given);
    await vi.waitFor(() => expect(source.isOpen).toBe(true), patience);
    return source;
  }

  /** Waits for this number of events of the type. */
  async see(count: number, type?: Event['type']): Promise<Event[]> {
    const found = () => this.events.filter((event) => type === undefined || event.type === type);
    await vi.waitFor(() => expect(found().length).toBeGreaterThanOrEqual(count), patience);
    return found();
  }

  /** Cuts the line, as a lost network does. */
  cut(): void {
    this.#request.destroy();
  }

  #take(text: string): void {
    this.isOpen = true;
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop()!;
    for (const block of blocks) this.#takeBlock(block);
  }

  #takeBlock(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      if (line.startsWith(':')) this.comments.push(line.slice(1).trim());
      const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (name !== undefined) fields.set(name, value!);
    }
    const id = fields.get('id');
    if (id !== undefined) this.lastEventId = id;
    if (fields.has('retry')) this.retryMs = Number(fields.get('retry'));
    const data = fields.get('data');
    if (data === undefined) return;
    const event = JSON.parse(data) as Event;
    expect([fields.get('event'), id]).toEqual([event.type, event.id]);
    this.events.push(event);
    this.#onEvent?.();
  }
}

/** Without an event a check is repeated after this time: not everything that changes is one. */
const quietMs = 1_000;
/** Several events of one change are one check. */
const settleMs = 20;

/** Repeats a check after events of the daemon until it passes, and returns its result. */
export async function afterEvents<Result>(
  { url, headers }: ApiClient,
  check: () => Promise<Result>,
  timeoutMs = 120_000,
): Promise<Result> {
  let wake = () => {};
  let hasChanged = false;
  const onEvent = () => {
    hasChanged = true;
    wake();
  };
  const source = new EventSource(url, { headers, onEvent });
  const deadline = performance.now() + timeoutMs;
  try {
    for (;;) {
      hasChanged = false;
      try {
        return await check();
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, hasChanged ? settleMs : quietMs);
        wake = () => {
          clearTimeout(timer);
          setTimeout(resolve, settleMs);
        };
      });
    }
  } finally {
    source.cut();
  }
}
