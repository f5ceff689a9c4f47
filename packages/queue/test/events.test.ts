import * as grpc from '@grpc/grpc-js';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createDelivery } from '../src/delivery/index.js';
import { openPostgresStore } from '../src/storage/postgres/open.js';
import { startPostgres } from './postgres/postgres-server.js';
import { queueV1 } from './support/grpc-handler.js';
import {
  endWithFile,
  makeQueue,
  newEmbeddedStore,
  startTestServer,
  tokens,
  type TestServer,
  type Who,
} from './support/server.js';

interface Received {
  id: string;
  event: string | undefined;
  data: Record<string, any> | undefined;
}

/** A reader of the stream: `until` resolves when events of these types have come, in this order. */
class Stream {
  readonly received: Received[] = [];
  readonly #abort = new AbortController();
  #wake = () => {};
  status = 0;
  problem: any;

  static async open(url: string, query = '', who: Who = 'root', lastId?: string) {
    const stream = new Stream();
    const response = await fetch(`${url}/v1/events${query}`, {
      headers: {
        authorization: `Bearer ${tokens[who]}`,
        ...(lastId !== undefined && { 'last-event-id': lastId }),
      },
      signal: stream.#abort.signal,
    });
    stream.status = response.status;
    if (response.status !== 200) stream.problem = await response.json();
    else void stream.#read(response.body!).catch(() => undefined);
    onTestFinished(() => stream.close());
    if (response.status === 200) await stream.#until(() => stream.received.length > 0);
    return stream;
  }

  get events(): Record<string, any>[] {
    return this.received.flatMap(({ data }) => data ?? []);
  }

  get lastId(): string {
    return this.received.at(-1)!.id;
  }

  async until(...types: string[]): Promise<Record<string, any>[]> {
    await this.#until(() => this.events.length >= types.length);
    expect(this.events.map(({ type }) => type)).toEqual(types);
    return this.events;
  }

  close(): void {
    this.#abort.abort();
  }

  async #until(isDone: () => boolean): Promise<void> {
    while (!isDone()) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let text = '';
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const blocks = text.split('\n\n');
      text = blocks.pop()!;
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
        const data = field('data');
        const id = field('id');
        if (id === undefined) continue;
        this.received.push({
          id,
          event: field('event'),
          data: data === undefined ? undefined : (JSON.parse(data) as Record<string, any>),
        });
      }
      this.#wake();
    }
  }
}

const onEnd = endWithFile();
let database = '';
const openDatabase = () =>
  openPostgresStore(database, { clock: systemClock, random: systemRandom, log: silentLog });
const openStore = async (kind: string) => {
  if (kind === 'embedded') return newEmbeddedStore(onEnd);
  const postgres = await startPostgres();
  onEnd(() => postgres.remove());
  database = await postgres.database('events');
  return openDatabase();
};

describe.each(['embedded', 'postgres'])('events on the %s store', (kind) => {
  let server: TestServer;
  let client: any;
  beforeAll(async () => {
    server = await startTestServer({
      onEnd,
      store: await openStore(kind),
      createDelivery,
      settings: { grpc: { host: '127.0.0.1', port: 0 } },
    });
    await makeQueue(server, 'mail', { callback: { protocol: 'pull' } });
    await makeQueue(server, 'other.one', { callback: { protocol: 'pull' } });
    const { url } = server.running.listeners.find(({ listener }) => listener === 'grpc')!;
    client = new queueV1.Queue(new URL(url).host, grpc.credentials.createInsecure());
    onEnd(() => client.close());
  });

  const post = async (path: string, body: object) => {
    const answer = await server.as('root', { method: 'POST', path, body });
    expect(answer.status, answer.text).toBeLessThan(300);
    return answer.body as any;
  };
  const submit = (queue = 'mail', over: object = {}) =>
    post(`/v1/queues/${queue}/tasks`, { handler_ref: 'mail.send', ...over });
  const claim = async (queue = 'mail') => {
    const claimed = await post(`/v1/queues/${queue}/tasks:claim`, { worker: 'w', wait_ms: 5_000 });
    return claimed.tasks[0];
  };
  const settle = ({ id, lease_token }: any, item: object, queue = 'mail') =>
    post(`/v1/queues/${queue}/tasks:settle`, { items: [{ id, lease_token, ...item }] });

  test('breaker: its opening and closing are events, and any server shows its state', async () => {
    const breaker = { min_requests: 5, window_ms: 600_000, open_ms: 1_000 };
    const config = { callback: { protocol: 'pull' }, circuit_breaker: breaker };
    await makeQueue(server, 'mail.breaks', config);
    const other =
      kind === 'embedded'
        ? server
        : await startTestServer({ store: await openDatabase(), createDelivery });
    const shown = async () => {
      const path = '/v1/queues/mail.breaks/stats';
      const { breakers } = (await other.as('root', { path })).body as any;
      return breakers.map(({ handler_ref, state }: any) => `${handler_ref} ${state}`);
    };
    const stream = await Stream.open(server.url, '?queue=mail.breaks&types=breaker');
    for (let i = 0; i < 8; i++) await submit('mail.breaks', { handler_ref: 'bad' });
    for (let i = 0; i < 5; i++) {
      await settle(await claim('mail.breaks'), { outcome: 'fail' }, 'mail.breaks');
    }
    const [opened] = await stream.until('breaker');
    expect(opened).toMatchObject({ state: 'open', handler_ref: 'bad', queue: 'mail.breaks' });
    expect([opened!['task_id'].length, typeof opened!['next_probe_at']]).toEqual([26, 'string']);
    await expect.poll(shown).toEqual([expect.stringMatching('bad .*open')]);
    for (let i = 0; i < 3; i++) {
      await settle(await claim('mail.breaks'), { outcome: 'complete' }, 'mail.breaks');
    }
    const [, closed] = await stream.until('breaker', 'breaker');
    expect(closed).toMatchObject({ state: 'closed', next_probe_at: null });
    const none = kind === 'embedded' ? ['bad closed'] : [];
    await expect.poll(shown).toEqual(none);
    expect(server.differences).toEqual([]);
  });

  test('a stream has what happens from now on, and goes on where it ended', async () => {
    await submit();
    await settle(await claim(), { outcome: 'complete' });
    const first = await Stream.open(server.url, '?queue=mail');
    const { id } = await submit();
    const task = await claim();
    await first.until('submitted', 'started');
    first.close();
    await settle(task, { outcome: 'fail', error_type: 'Boom', message: 'no', retry: false });
    const next = await Stream.open(server.url, '?queue=mail', 'root', first.lastId);
    const [failed, dead] = await next.until('failed', 'dead');
    expect(failed).toMatchObject({ task_id: id, queue: 'mail', error_type: 'Boom', message: 'no' });
    expect(dead).toMatchObject({ handler_ref: 'mail.send', attempt: 1, dead_reason: 'PERMANENT' });
    expect(next.received.at(-1)).toMatchObject({ id: dead!['cursor'], event: 'dead' });
    expect(Date.parse(dead!['at'])).toBeGreaterThan(0);
    const byQuery = await Stream.open(server.url, `?cursor=${failed!['cursor']}&types=dead`);
    await byQuery.until('dead');
    expect(server.differences).toEqual([]);
  });

  test('a stream is filtered by types and by the grants of the caller', async () => {
    const [mine, theirs, cancelled] = await Promise.all([
      Stream.open(server.url, '', 'submitter'),
      Stream.open(server.url, '', 'stranger'),
      Stream.open(server.url, '?types=cancelled,succeeded&queue=mail', 'worker'),
    ]);
    const { id } = await submit('mail', { delay_ms: 60_000 });
    await submit('other.one');
    await post(`/v1/tasks/${id}:cancel`, { reason: 'enough' });
    const [event] = await cancelled.until('cancelled');
    expect(event).toMatchObject({ task_id: id, message: 'enough' });
    await mine.until('submitted', 'cancelled');
    await theirs.until('submitted');
    expect(theirs.events[0]).toMatchObject({ queue: 'other.one' });
  });

  test('what cannot be followed is refused', async () => {
    const refused = async (query: string, who: Who = 'root') => {
      const { status, problem } = await Stream.open(server.url, query, who);
      return [status, problem.code];
    };
    expect(await refused('?cursor=garbage')).toEqual([422, 'INVALID_QUERY']);
    expect(await refused('?types=exploded')).toEqual([422, 'INVALID_QUERY']);
    expect(await refused('?cursor=0.0')).toEqual([410, 'STALE_CURSOR']);
    expect(await refused('?queue=nope')).toEqual([404, 'QUEUE_NOT_FOUND']);
    expect(await refused('?queue=mail', 'stranger')).toEqual([403, 'FORBIDDEN']);
    expect(await refused('', 'nobody')).toEqual([403, 'FORBIDDEN']);
  });

  test('gRPC streams the same events', async () => {
    const metadata = new grpc.Metadata();
    metadata.set('authorization', `Bearer ${tokens.root}`);
    const stream = client.Events({ queue: 'mail', types: ['submitted'] }, metadata);
    onTestFinished(() => stream.cancel());
    stream.on('error', () => undefined);
    const received = new Promise<any>((resolve) => stream.on('data', resolve));
    // The stream is open when the server has answered something about it.
    let id = '';
    const timer = setInterval(() => void submit().then((task) => (id ||= task.id)), 100);
    const event = await received;
    clearInterval(timer);
    expect(event).toMatchObject({ type: 'submitted', queue: 'mail', handler_ref: 'mail.send' });
    expect(event.cursor).toMatch(/^\d+\.\d+$/);
    const stale = client.Events({ cursor: '0.0' }, metadata);
    const error = await new Promise<any>((resolve) => stale.on('error', resolve));
    expect(error.details).toContain('cursor');
  });
});
