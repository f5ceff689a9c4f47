import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { loopbackGuard, openOutbound, watch } from '../../test/http1/loopback.js';

const ok = 'HTTP/1.1 200 OK\r\n';
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`;

/** The outcome of a request to a server that sends these bytes and, with `end`, closes. */
async function read(text: string, { end = false, method = 'POST' as 'POST' | 'HEAD' } = {}) {
  const server = await watch(
    createServer((socket) => {
      socket.once('data', () => {
        socket.write(text, 'latin1');
        if (end) socket.end();
      });
    }),
  );
  const outbound = openOutbound({ guard: loopbackGuard() });
  const url = `http://127.0.0.1:${server.port}/`;
  const outcome = await outbound.request({ url, method, timeoutMs: end ? 30_000 : 500 });
  return outcome.ok ? { ...outcome, body: Buffer.from(outcome.body).toString('latin1') } : outcome;
}

test.each<[string, string, object, object]>([
  ['a length', `${ok}Content-Length: 3\r\n\r\nabc`, {}, { body: 'abc' }],
  ['a length of 0', `${ok}Content-Length: 0\r\n\r\n`, {}, { body: '' }],
  ['the close', `${ok}\r\nabc`, { end: true }, { status: 200, body: 'abc' }],
  ['chunks', `${chunked}3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n`, {}, { body: 'abc0123456789' }],
  [
    'chunks with extensions and trailers',
    `${chunked}3;a="b c"\r\nabc\r\n000;x\r\nDigest: x\r\n\r\n`,
    {},
    { body: 'abc', headers: { 'transfer-encoding': 'chunked' } },
  ],
  ['the head, for HEAD', `${ok}Content-Length: 3\r\n\r\n`, { method: 'HEAD' }, { body: '' }],
  ['the head, for 204', 'HTTP/1.1 204 No\r\n\r\n', {}, { status: 204, body: '' }],
  ['the head, for 304', 'HTTP/1.1 304 No\r\nContent-Length: 3\r\n\r\n', {}, { body: '' }],
  [
    'a length, after early hints',
    `HTTP/1.1 103 Early\r\nLink: a\r\n\r\n${ok}Content-Length: 1\r\n\r\nx`,
    {},
    { status: 200, headers: { 'content-length': '1' }, body: 'x' },
  ],
])('response: ends with %s', async (_, text, options, expected) => {
  expect(await read(text, options)).toMatchObject({ ok: true, truncated: false, ...expected });
});

test.each<[string, string]>([
  ['a head', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ['a body of known length', `${ok}Content-Length: 3\r\n\r\nab`],
  ['a last body of known length', `${ok}Connection: close\r\nContent-Length: 3\r\n\r\nab`],
  ['a chunk', `${chunked}3\r\nab`],
  ['a chunk of the last response', `${ok}Connection: close\r\n${chunked.slice(ok.length)}3\r\nab`],
  ['chunks without the last', `${chunked}3\r\nabc\r\n`],
  ['trailers', `${chunked}0\r\nX: y\r\n`],
  ['early hints without a response', 'HTTP/1.1 103 Early\r\n\r\n'],
  ['nothing', ''],
])('response: %s cut off by the peer is CONNECTION_RESET', async (_, text) => {
  expect(await read(text, { end: true })).toMatchObject({ errorType: 'CONNECTION_RESET' });
});

test.each<[string, string]>([
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['another version', 'HTTP/2 200\r\n\r\n'],
  ['two digits of status', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['lines that end without CR', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
  ['one line that ends without CR', `${ok}A: b\nContent-Length: 0\r\n\r\n`],
  ['a CR alone', `${ok}A: b\rContent-Length: 0\r\n\r\n`],
  ['a header without a colon', `${ok}A\r\n\r\n`],
  ['a header without a name', `${ok}: a\r\n\r\n`],
  ['a space before the colon', `${ok}Content-Length : 1\r\n\r\nx`],
  ['a NUL in a value', `${ok}A: b\0\r\n\r\n`],
  ['a negative length', `${ok}Content-Length: -1\r\n\r\n`],
  ['a length in hexadecimal', `${ok}Content-Length: 0x1\r\n\r\nx`],
  ['a length that is empty', `${ok}Content-Length:\r\n\r\n`],
  ['a length beyond counting', `${ok}Content-Length: 99999999999999999999\r\n\r\n`],
  ['two lengths', `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx`],
  ['one length twice', `${ok}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`],
  ['a list of lengths', `${ok}Content-Length: 1, 1\r\n\r\nx`],
  ['a length and chunks', `${ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['a change of protocol', 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['a head without end', `${ok}A: ${'b'.repeat(17_000)}`],
  ['a head that is too long', `${ok}A: ${'b'.repeat(17_000)}\r\n\r\n`],
  ['a chunk without a size', `${chunked}\r\nabc\r\n0\r\n\r\n`],
  ['a chunk with a size that is none', `${chunked}x\r\nabc\r\n0\r\n\r\n`],
  ['a chunk with a negative size', `${chunked}-1\r\n`],
  ['a chunk with a space after its size', `${chunked}3 \r\nabc\r\n0\r\n\r\n`],
  ['a chunk with a size beyond counting', `${chunked}${'f'.repeat(17)}\r\n`],
  ['a chunk that is longer than its size', `${chunked}2\r\nabc\r\n0\r\n\r\n`],
  ['a size line that ends without CR', `${chunked}3\nabc\r\n0\r\n\r\n`],
  ['a chunk that ends without CR', `${chunked}3\r\nabc\n0\r\n\r\n`],
  ['a trailer that is no header', `${chunked}0\r\nx\r\n\r\n`],
  ['trailers without end', `${chunked}0\r\n${`A: ${'b'.repeat(997)}\r\n`.repeat(17)}\r\n`],
])('response: %s is not valid HTTP', async (_, text) => {
  expect(await read(text)).toMatchObject({
    errorType: 'NETWORK_ERROR',
    message: expect.stringMatching(/^The response is not valid HTTP: /) as string,
  });
});

test('response: a header named __proto__ does not change the prototype', async () => {
  const outcome = await read(`${ok}__proto__: a\r\nConstructor: b\r\nContent-Length: 0\r\n\r\n`);
  expect(outcome).toMatchObject({ ok: true, headers: { constructor: 'b' } });
});
