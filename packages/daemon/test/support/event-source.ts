import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, vi } from 'vitest';

export type Event = DaemonSchema<'Event'>;

const patience = { timeout: 60_000, interval: 5 };

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
  #rest = '';

  constructor(url: string, { lastId, query = '' }: { lastId?: string; query?: string } = {}) {
    const { hostname: host, port } = new URL(url);
    const headers = { accept: 'text/event-stream', ...(lastId && { 'last-event-id': lastId }) };
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
  }
}
