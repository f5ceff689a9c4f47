import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test, vi } from 'vitest';
import { nodeFetch } from '../src/node-fetch.js';

const servers: Server[] = [];
afterEach(close);

function close(): void {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
}

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/things`;
}

const fetch = nodeFetch()!;
const get = { method: 'GET', headers: {} };

test('sends method, headers and body, and returns status, headers and text', async () => {
  const echo: RequestListener = (request, response) =>
    void text(request).then((sent) => {
      response.writeHead(201, { 'x-kind': 'echo', 'retry-after': '3' });
      // A character is split between two chunks.
      const bytes = Buffer.from(
        `${request.method} ${request.headers['x-name'] as string} ${sent} ü`,
      );
      response.write(bytes.subarray(0, -1));
      setImmediate(() => response.end(bytes.subarray(-1)));
    });
  const url = await serve(echo);
  const init = { method: 'POST', headers: { 'x-name': 'ada' }, body: 'grüezi' };
  const response = await fetch(url, init);
  expect(response.status).toBe(201);
  expect(response.headers.get('X-Kind')).toBe('echo');
  expect(response.headers.get('absent')).toBeNull();
  expect(await response.text()).toBe('POST ada grüezi ü');
});

test('requests that follow each other share a connection', async () => {
  const ports = new Set<number | undefined>();
  const url = await serve((request, response) => {
    ports.add(request.socket.remotePort);
    response.end('{}');
  });
  for (let n = 0; n < 5; n++) await (await fetch(url, get)).text();
  expect(ports.size).toBe(1);
});

test('an aborted request rejects with the reason of its signal', async () => {
  let isWaiting = false;
  const url = await serve(() => (isWaiting = true));
  const stop = new AbortController();
  const waiting = fetch(url, { ...get, signal: stop.signal });
  await expect.poll(() => isWaiting).toBe(true);
  stop.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
  await expect(fetch(url, { ...get, signal: stop.signal })).rejects.toThrow('enough');
});

test('a server that is away or breaks off is an error', async () => {
  const url = await serve((_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half');
    setImmediate(() => response.destroy());
  });
  await expect(fetch(url, get)).rejects.toMatchObject({ code: 'ECONNRESET' });
  close();
  await expect(fetch(url, get)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test('outside Node there is none', () => {
  vi.stubGlobal('process', undefined);
  try {
    expect(nodeFetch()).toBeUndefined();
  } finally {
    vi.unstubAllGlobals();
  }
});
