import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { open } from '@millrace/engine';
import { systemClock } from '@millrace/kit/clock';
import { expect, test, vi } from 'vitest';
import { Events } from '../events/events.js';
import { eventHandlers } from './handlers.js';

type Handler = ReturnType<typeof eventHandlers>['streamEvents'];
type Call = Handler extends (call: infer Given) => unknown ? Given : never;

/** The text of a stream, as the handler hands it to the server. */
function contentOf(handler: Handler, signal: AbortSignal): AsyncIterable<string> {
  const ending = new AbortController().signal;
  const call = { headers: {}, query: {}, signal, ending, exchange: { peer: {} } };
  const answer = (handler as (call: Call) => unknown)(call as unknown as Call);
  return (answer as { content: AsyncIterable<string> }).content;
}

test('a silent stream sends a comment every 15 seconds', async () => {
  const waits: { ms: number; run: () => void }[] = [];
  const clock = {
    ...systemClock,
    after: (ms: number, run: () => void) => {
      const wait = { ms, run };
      waits.push(wait);
      return { cancel: () => void waits.splice(waits.indexOf(wait), 1) };
    },
  };
  const silent = {
    startId: '7-00000000',
    events: (async function* () {
      yield await new Promise<never>(() => undefined);
    })(),
  };
  const stop = new AbortController();
  const handler = eventHandlers({ events: { follow: () => silent } }, clock).streamEvents;
  const text = contentOf(handler, stop.signal)[Symbol.asyncIterator]();
  expect((await text.next()).value).toBe('retry: 2000\nid: 7-00000000\n\n');
  await text.next();
  for (let n = 0; n < 3; n++) {
    const next = text.next();
    await expect.poll(() => waits.map(({ ms }) => ms)).toEqual([15_000]);
    waits[0]!.run();
    expect((await next).value).toMatch(/^: \w+\n\n$/);
  }
  stop.abort();
  expect((await text.next()).done).toBe(true);
});

test('a reader who does not read makes nobody keep anything for them', async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-slow-'));
  const database = await open(home);
  const events = new Events({ database, clock: systemClock });
  const handler = eventHandlers({ events }, systemClock).streamEvents;
  const stop = new AbortController();
  const server = createServer((_request, response) => {
    Readable.from(contentOf(handler, stop.signal)).pipe(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const [answer] = (await once(get({ port, host: '127.0.0.1' }), 'response')) as [
      IncomingMessage,
    ];
    answer.pause();
    await vi.waitFor(() => expect(database.watches.size).toBe(1), { timeout: 60_000 });
    const notes = database.collection('notes');
    const body = 'x'.repeat(100_000);
    const count = 300;
    for (let n = 0; n < count; n++) await notes.upsert(`n${n}`, { body });
    // The system takes some megabytes for the socket; all the rest stays in the log.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(database.watches.oldestSeq).toBeLessThan(database.logPosition.seq - count / 4);
    let seen = 0;
    let rest = '';
    answer.setEncoding('utf8');
    answer.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop()!;
      seen += lines.filter((line) => line === 'event: note.changed').length;
    });
    answer.resume();
    await vi.waitFor(() => expect(seen).toBe(count), { timeout: 60_000 });
  } finally {
    stop.abort();
    server.closeAllConnections();
    server.close();
    await database.close();
    rmSync(home, { recursive: true, force: true });
  }
});
