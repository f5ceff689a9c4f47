import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { afterEach, expect, test } from 'vitest';
import { relay } from './relay.js';
import { upstreamsOf, type Upstream } from './upstream.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** A thousand times faster than real time. */
const hasty: Clock = {
  ...systemClock,
  after: (delayMs, run) => systemClock.after(delayMs / 1000, run),
};

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function upstreamAt(url: string, clock: Clock): Upstream {
  return upstreamsOf({ queue: { url }, database: { url } }, clock).queue;
}

const request = { method: 'GET', target: '/', headers: {}, body: undefined };

/** A front that hands on what comes from behind. */
async function relaying(behind: RequestListener, clock: Clock): Promise<string> {
  const upstream = upstreamAt(await serve(behind), systemClock);
  return serve((_request, response) => {
    const { signal } = new AbortController();
    void upstream
      .request({ ...request, signal })
      .then((answer) => relay(answer, response, { clock, log: memoryLog(), ending: signal }))
      .catch(() => response.destroy());
  });
}

test('an answer that does not begin in time is given up', async () => {
  const url = await serve(() => undefined);
  const { signal } = new AbortController();
  await expect(upstreamAt(url, hasty).request({ ...request, signal })).rejects.toMatchObject({
    code: 'UPSTREAM_UNREACHABLE',
    detail: expect.stringContaining('no answer within 35 s'),
  });
});

test('an answer that comes to a stop is cut, a watch that is quiet is not', async () => {
  const type = { 'content-type': 'application/json' };
  const front = await relaying((_request, response) => {
    response.writeHead(200, type).write('{"half":');
  }, hasty);
  await expect(fetch(front).then((answer) => answer.text())).rejects.toThrow();

  const quiet = await relaying((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.write('{"seq":1}\n');
    systemClock.after(200, () => response.end('{"seq":2}\n'));
  }, hasty);
  const answer = await fetch(quiet);
  expect(await answer.text()).toBe('{"seq":1}\n{"seq":2}\n');
});

test('an answer without end is cut', async () => {
  const chunk = Buffer.alloc(1_048_576, ' ');
  const front = await relaying((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const more = () => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', more);
    more();
  }, systemClock);
  let received = 0;
  const read = async () => {
    const answer = await fetch(front);
    for await (const piece of answer.body!) received += (piece as Uint8Array).length;
  };
  await expect(read()).rejects.toThrow();
  expect(received).toBeLessThanOrEqual(64 * 1_048_576);
});

test('an address that is none is a mistake of the settings', () => {
  expect(() => upstreamAt('http://[', systemClock)).toThrow('queue.url must be a URL');
});
