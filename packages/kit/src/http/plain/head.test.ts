import fc from 'fast-check';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { readPlainHead } from './head.js';

const head = (...lines: string[]) => lines.join('\r\n');

test('a plain head is read with its headers by lower-case name', () => {
  const text = head('POST /v1/x:y HTTP/1.1', 'Host: a', 'Content-Length: 12', 'X-A: \t b c\t ');
  expect(readPlainHead(text)).toEqual({
    method: 'POST',
    path: '/v1/x:y',
    headers: { host: 'a', 'content-length': '12', 'x-a': 'b c' },
    bodyBytes: 12,
  });
  expect(readPlainHead(head('GET / HTTP/1.1', 'host: a', 'connection: Keep-Alive'))).toMatchObject({
    bodyBytes: 0,
  });
});

test.each([
  ['another version', 'GET / HTTP/1.0', 'Host: a'],
  ['another method', 'PATCH / HTTP/1.1', 'Host: a'],
  ['a query', 'GET /?a=b HTTP/1.1', 'Host: a'],
  ['a percent sign', 'GET /%41 HTTP/1.1', 'Host: a'],
  ['a whole URL', 'GET http://a/ HTTP/1.1', 'Host: a'],
  ['two spaces', 'GET  / HTTP/1.1', 'Host: a'],
  ['no host', 'GET / HTTP/1.1', 'X-A: b'],
  ['an empty host', 'GET / HTTP/1.1', 'Host:'],
  ['a name twice', 'GET / HTTP/1.1', 'Host: a', 'host: b'],
  ['a space before the colon', 'GET / HTTP/1.1', 'Host : a'],
  ['a line that goes on', 'GET / HTTP/1.1', 'Host: a', ' b'],
  ['a line feed alone', 'GET / HTTP/1.1', 'Host: a\nX-A: b'],
  ['a letter beyond ASCII', 'GET / HTTP/1.1', 'Host: a', 'X-A: ä'],
  ['no name', 'GET / HTTP/1.1', 'Host: a', ': b'],
  ['a length that is none', 'POST / HTTP/1.1', 'Host: a', 'Content-Length: +1'],
  ['two lengths in one', 'POST / HTTP/1.1', 'Host: a', 'Content-Length: 1, 1'],
  ['chunks', 'POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'],
  ['an expectation', 'POST / HTTP/1.1', 'Host: a', 'Expect: 100-continue'],
  ['an upgrade', 'GET / HTTP/1.1', 'Host: a', 'Upgrade: h2c'],
  ['a connection that closes', 'GET / HTTP/1.1', 'Host: a', 'Connection: close'],
  ['a prototype', 'GET / HTTP/1.1', 'Host: a', '__proto__: b'],
  [
    'too many lines',
    'GET / HTTP/1.1',
    'Host: a',
    ...Array.from({ length: 60 }, (_, i) => `A${i}: b`),
  ],
])('%s is left to Node', (_, ...lines) => {
  expect(readPlainHead(head(...lines))).toBeUndefined();
});

test('what is read is what Node reads', async () => {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  /** What Node makes of it; undefined when it refuses. */
  const readByNode = (text: string) =>
    new Promise<IncomingMessage | undefined>((resolve, reject) => {
      requests.length = 0;
      const socket = connect(port, '127.0.0.1', () => socket.end(`${text}\r\n\r\n`, 'latin1'));
      socket.on('error', reject).resume();
      socket.on('end', () => resolve(requests[0]));
    });
  const bit = fc.constantFrom(
    'a',
    'B',
    '1',
    '-',
    '_',
    ' ',
    '\t',
    ':',
    '"',
    ',',
    '\r',
    '\n',
    '\0',
    '\x7f',
    'é',
  );
  const text = fc.string({ unit: bit, maxLength: 6 });
  const line = fc.oneof(
    fc.tuple(text, text).map(([name, value]) => `${name}:${value}`),
    fc
      .tuple(fc.constantFrom('X-A', 'x-b', 'Accept', 'Cookie'), text)
      .map((pair) => pair.join(': ')),
  );
  const start = fc.constantFrom('GET / HTTP/1.1', 'DELETE /a/b:c HTTP/1.1', 'GET /a b HTTP/1.1');
  let read = 0;
  await fc.assert(
    fc.asyncProperty(start, fc.array(line, { maxLength: 4 }), async (first, lines) => {
      const whole = head(first, 'Host: a', ...lines);
      const plain = readPlainHead(whole);
      if (!plain) return;
      read++;
      const node = await readByNode(whole);
      expect(node && { method: node.method, path: node.url, headers: node.headers }).toEqual({
        method: plain.method,
        path: plain.path,
        headers: plain.headers,
      });
    }),
    { numRuns: 1_500 },
  );
  expect(read).toBeGreaterThan(100);
  server.close();
}, 60_000);
