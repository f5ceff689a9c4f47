import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { exchange, harmless, isAbort, reasonOf } from './exchange.js';

const never = new AbortController().signal;

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a request carries method, token, headers and JSON; the answer comes whole', async () => {
  const url = await serve((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const { authorization, 'content-type': type, 'if-match': match } = request.headers;
      const line = `${request.method} ${request.url}`;
      response.writeHead(418, { etag: '"7"' });
      response.end(JSON.stringify({ line, authorization, type, match, body }));
    });
  });
  const answer = await exchange({
    method: 'PUT',
    url: `${url}/a?b=c`,
    token: 'mr_1',
    headers: { 'if-match': '"6"' },
    body: '{"name":"Zoë"}',
    signal: never,
  });
  expect([answer.status, answer.headers['etag']]).toEqual([418, '"7"']);
  expect(JSON.parse(answer.text)).toEqual({
    line: 'PUT /a?b=c',
    authorization: 'Bearer mr_1',
    type: 'application/json',
    match: '"6"',
    body: '{"name":"Zoë"}',
  });
});

test('without token and body neither is sent', async () => {
  const url = await serve(({ headers }, response) => {
    response.end(JSON.stringify([headers.authorization ?? null, headers['content-type'] ?? null]));
  });
  const { text } = await exchange({ method: 'GET', url, signal: never });
  expect(text).toBe('[null,null]');
});

test('a server that is silent too long is given up, and so is one when Ctrl-C comes', async () => {
  const url = await serve(() => undefined);
  const silent = exchange({ method: 'GET', url, signal: never, patienceMs: 50 });
  await expect(silent).rejects.toThrow('no response within 0.05 seconds');
  const abort = new AbortController();
  const cut = exchange({ method: 'GET', url, signal: abort.signal });
  abort.abort();
  expect(isAbort(await cut.catch((error: unknown) => error))).toBe(true);
  expect(isAbort(new Error('other'))).toBe(false);
});

test('a connection that breaks or cannot be made has its reason', async () => {
  const url = await serve((request) => request.socket.destroy());
  const broken = await exchange({ method: 'GET', url, signal: never }).catch(reasonOf);
  expect(broken).toBe('the connection broke');
  const nobody = { method: 'GET', url: 'http://127.0.0.1:1', signal: never };
  expect(await exchange(nobody).catch(reasonOf)).toBe('nothing listens there');
});

test('a certificate that nobody vouches for is refused, with what to do', async () => {
  const pem = (name: string) =>
    readFileSync(new URL(`../../../kit/test/outbound/self-signed.${name}.pem`, import.meta.url));
  const server = createSecureServer({ cert: pem('cert'), key: pem('key') });
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const request = { method: 'GET', url: `https://127.0.0.1:${port}`, signal: never };
  expect(await exchange(request).catch(reasonOf)).toMatch(/certificate; .* NODE_EXTRA_CA_CERTS$/);
});

test('an answer cut off in the middle is no answer', async () => {
  const url = await serve((request, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('{"half":', () => request.socket.destroy());
  });
  await expect(exchange({ method: 'GET', url, signal: never })).rejects.toThrow();
});

test('control characters become spaces', () => {
  expect(harmless('a\u001B[2J\nb')).toBe('a [2J b');
});
