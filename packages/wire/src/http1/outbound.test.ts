import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  loopbackGuard,
  openOutbound,
  startHttp,
  tableResolver,
} from '../../test/http1/loopback.js';
import type { OutboundOutcome } from '@millrace/kit/outbound';

const text = (outcome: OutboundOutcome) =>
  outcome.ok ? Buffer.from(outcome.body).toString() : outcome.message;

test('request and response bodies are transferred unchanged', async () => {
  const payload = Uint8Array.from({ length: 256 }, (_, i) => i);
  const server = await startHttp((request, response) => {
    response.writeHead(201, { 'X-One': 'a', 'Set-Cookie': ['b=1', 'c=2'] });
    request.pipe(response);
  });
  const outbound = openOutbound({ guard: loopbackGuard() });
  const outcome = await outbound.request({
    url: `http://127.0.0.1:${server.port}/hooks?a=b#c`,
    method: 'POST',
    headers: { 'Content-Type': 'application/octet-stream' },
    body: payload,
  });
  expect(outcome).toMatchObject({
    ok: true,
    status: 201,
    headers: { 'x-one': 'a', 'set-cookie': ['b=1', 'c=2'] },
    truncated: false,
    remoteIp: '127.0.0.1',
  });
  expect(outcome.ok && [...outcome.body]).toEqual([...payload]);
  expect(Number.isInteger(outcome.durationMs)).toBe(true);
});

test('the request line and the Host header match the URL', async () => {
  const server = await startHttp((request, response) =>
    response.end(`${request.method} ${request.url} ${request.headers.host}`),
  );
  const { resolver } = tableResolver({ 'hooks.test': ['127.0.0.1'] });
  const outbound = openOutbound({ guard: loopbackGuard('hooks.test'), resolver });
  const outcome = await outbound.request({
    url: `http://HOOKS.test.:${server.port}/a/../b?c=%20d#e`,
    method: 'PUT',
    headers: { host: 'evil.test' },
  });
  expect(text(outcome)).toBe(`PUT /b?c=%20d hooks.test:${server.port}`);
});

test('hop-by-hop headers are not sent', async () => {
  const server = await startHttp((request, response) =>
    response.end(JSON.stringify(request.headers)),
  );
  const outbound = openOutbound({ guard: loopbackGuard() });
  const outcome = await outbound.request({
    url: `http://127.0.0.1:${server.port}/`,
    method: 'POST',
    headers: {
      Connection: 'close, X-Private',
      'X-Private': '1',
      'Keep-Alive': 'timeout=99',
      'Transfer-Encoding': 'chunked',
      TE: 'trailers',
      Upgrade: 'websocket',
      Expect: '100-continue',
      'Proxy-Authorization': 'Basic eDp5',
      'Content-Length': '9999',
      'X-Public': 'yes',
      'X-Empty': '',
    },
    body: 'four',
  });
  expect(JSON.parse(text(outcome))).toEqual({
    host: `127.0.0.1:${server.port}`,
    connection: 'keep-alive',
    'content-length': '4',
    'x-public': 'yes',
    'x-empty': '',
  });
});

test.each([{ 'x-a': 'one\r\nx-b: two' }, { 'bad name': 'x' }, { 'x-a': 'snow ☃' }, { '': 'x' }])(
  'a header that no message can carry is a mistake of the caller: %j',
  async (headers) => {
    const server = await startHttp((_, response) => response.end());
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    await expect(outbound.request({ url, method: 'POST', headers })).rejects.toThrow(TypeError);
    expect(server.connections).toBe(0);
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ ok: true });
  },
);

describe('responses', () => {
  test('a compressed response stays compressed', async () => {
    const packed = gzipSync('hello');
    const server = await startHttp((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed),
    );
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    const outcome = await outbound.request({ url, method: 'GET' });
    expect(outcome.ok && Buffer.compare(outcome.body, packed)).toBe(0);
  });

  test('HEAD, 204 and early hints have no body', async () => {
    const server = await startHttp((request, response) => {
      if (request.url === '/hints') response.writeEarlyHints({ link: '</a>; rel=preload' });
      response.writeHead(request.url === '/none' ? 204 : 200).end();
    });
    const outbound = openOutbound({ guard: loopbackGuard() });
    const origin = `http://127.0.0.1:${server.port}`;
    const head = await outbound.request({ url: `${origin}/`, method: 'HEAD' });
    expect(head).toMatchObject({ ok: true, status: 200 });
    const none = await outbound.request({ url: `${origin}/none`, method: 'DELETE' });
    expect(none).toMatchObject({ ok: true, status: 204 });
    const hints = await outbound.request({ url: `${origin}/hints`, method: 'GET' });
    expect(hints).toMatchObject({ ok: true, status: 200 });
    expect([head, none, hints].map(text)).toEqual(['', '', '']);
  });

  test('a response over the limit is truncated and its connection closed', async () => {
    const server = await startHttp((_, response) => {
      const flood = setInterval(() => response.write('x'.repeat(10_000)), 1);
      response.on('close', () => clearInterval(flood));
    });
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    const outcome = await outbound.request({ url, method: 'POST', maxResponseBytes: 25_000 });
    expect(outcome).toMatchObject({ ok: true, status: 200, truncated: true });
    expect(text(outcome)).toBe('x'.repeat(25_000));
    await expect.poll(() => server.open.size).toBe(0);
    expect(await outbound.request({ url, method: 'POST' })).toMatchObject({ truncated: true });
  });

  test.each([
    [5, 'hello', false],
    [4, 'hell', true],
    [0, '', true],
  ])('with a cap of %d, "hello" becomes "%s"', async (maxResponseBytes, body, truncated) => {
    const server = await startHttp((_, response) => response.end('hello'));
    const outbound = openOutbound({ guard: loopbackGuard() });
    const url = `http://127.0.0.1:${server.port}/`;
    const outcome = await outbound.request({ url, method: 'GET', maxResponseBytes });
    expect(outcome).toMatchObject({ ok: true, truncated });
    expect(text(outcome)).toBe(body);
  });
});
