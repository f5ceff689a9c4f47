import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openNodeReader, readPieces, type ReadOptions } from './response-reader.test-support.js';

const ok = 'HTTP/1.1 200 OK\r\n';
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`;

const singly = (bytes: Buffer) => Array.from(bytes, (byte) => Buffer.of(byte));

/** The text whole and byte by byte, which must not make a difference. */
function read(text: string, options: ReadOptions = {}) {
  const bytes = Buffer.from(text, 'latin1');
  const whole = readPieces([bytes], options);
  const single = readPieces(singly(bytes), options);
  if (typeof whole === 'object') expect(single).toEqual({ ...whole, pieces: expect.any(Number) });
  else expect(single).toBeTypeOf('string');
  return whole;
}

describe('response framing', () => {
  test.each<[string, string, ReadOptions, object]>([
    ['by its length', `${ok}Content-Length: 3\r\n\r\nabc`, {}, { body: 'abc', keepsAlive: true }],
    ['at once', `${ok}Content-Length: 0\r\n\r\n`, {}, { body: '', keepsAlive: true }],
    [
      'with its connection',
      `${ok}\r\nabc`,
      { isClosed: true },
      { status: 200, body: 'abc', keepsAlive: false },
    ],
    ['with its chunks', `${chunked}3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n`, {}, { body: 'abcd' }],
    [
      'behind trailers and extensions',
      `${chunked}3;a="b c"\r\nabc\r\n000;x\r\nDigest: x\r\nX-B: y\r\n\r\n`,
      {},
      { body: 'abc', keepsAlive: true, headers: { 'transfer-encoding': 'chunked' } },
    ],
    [
      'by a size in either case',
      `${chunked}A\r\n0123456789\r\n0\r\n\r\n`,
      {},
      { body: '0123456789' },
    ],
    [
      'with its connection, for want of chunks',
      `${ok}Transfer-Encoding: gzip\r\n\r\nabc`,
      { isClosed: true },
      { body: 'abc', keepsAlive: false },
    ],
    [
      'with the last of several codings',
      `${ok}Transfer-Encoding: gzip\r\ntransfer-encoding: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`,
      {},
      { body: 'a', headers: { 'transfer-encoding': ['gzip', 'Chunked'] } },
    ],
    [
      'with its head, for HEAD',
      `${ok}Content-Length: 3\r\n\r\n`,
      { isHeadOnly: true },
      { body: '' },
    ],
    ['with its head, at 204', 'HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n', {}, { body: '' }],
    [
      'with its head, at 304',
      'HTTP/1.1 304\r\nTransfer-Encoding: chunked\r\n\r\n',
      {},
      { body: '' },
    ],
    [
      'behind hints',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nLink: a\r\n\r\n${ok}Content-Length: 1\r\n\r\nx`,
      {},
      { status: 200, headers: { 'content-length': '1' }, body: 'x' },
    ],
  ])('%s', (_, text, options, expected) => {
    expect(read(text, options)).toMatchObject(expected);
  });

  test.each<[string, string]>([
    ['a head', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['a body of known length', `${ok}Content-Length: 3\r\n\r\nab`],
    ['a chunk', `${chunked}3\r\nab`],
    ['the end of a chunk', `${chunked}3\r\nabc\r`],
    ['chunks without the last', `${chunked}3\r\nabc\r\n`],
    ['trailers', `${chunked}0\r\nX: y\r\n`],
    ['hints without an answer', 'HTTP/1.1 103 Early\r\n\r\n'],
    ['nothing', ''],
  ])('%s that the connection cuts off is not whole', (_, text) => {
    expect(read(text, { isClosed: true })).toBe('cut short');
    expect(read(text)).toBe('unfinished');
  });
});

describe('connection reuse', () => {
  const empty = 'Content-Length: 0\r\n';
  test.each<[string, string, boolean]>([
    ['1.1 as ever', `${ok}${empty}\r\n`, true],
    ['1.1 that says close', `${ok}${empty}Connection: Close\r\n\r\n`, false],
    ['1.1 that says close among others', `${ok}${empty}Connection: x, close\r\n\r\n`, false],
    [
      '1.1 that says close elsewhere',
      `${ok}${empty}Connection: x\r\nConnection: close\r\n\r\n`,
      false,
    ],
    ['1.0 as ever', `HTTP/1.0 200 OK\r\n${empty}\r\n`, false],
    ['1.0 that stays', `HTTP/1.0 200 OK\r\n${empty}Connection: keep-alive\r\n\r\n`, true],
    [
      '1.0 with chunks, which it does not have',
      'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      false,
    ],
    ['with a byte behind the answer', `${ok}${empty}\r\nx`, false],
    ['with an answer behind the answer', `${ok}${empty}\r\n${ok}${empty}\r\n`, false],
    ['with a byte behind the chunks', `${chunked}0\r\n\r\nx`, false],
    ['with a body where none may be', `HTTP/1.1 204 No\r\n\r\nx`, false],
  ])('%s', (_, text, keepsAlive) => {
    expect(read(text)).toMatchObject({ keepsAlive });
  });

  test.each([
    ['timeout=5', 5_000],
    ['timeout=5, max=100', 5_000],
    ['max=3,timeout=7', 7_000],
    ['max=3', undefined],
    ['xtimeout=5', undefined],
  ])('%s lets it lie for %s ms', (value, keepAliveMs) => {
    expect(read(`${ok}${empty}Keep-Alive: ${value}\r\n\r\n`)).toMatchObject({ keepAliveMs });
  });
});

test.each<[string, string]>([
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['another version', 'HTTP/2 200\r\n\r\n'],
  ['a version that never was', 'HTTP/1.2 200 OK\r\n\r\n'],
  ['two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['a status below all', 'HTTP/1.1 099 OK\r\n\r\n'],
  ['two spaces', 'HTTP/1.1  200 OK\r\n\r\n'],
  ['a control character in the reason', 'HTTP/1.1 200 O\x01K\r\n\r\n'],
  ['an empty line first', `\r\n${ok}\r\n`],
  ['lines that end without CR', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
  ['one line that ends without CR', `${ok}A: b\nContent-Length: 0\r\n\r\n`],
  ['a CR alone', `${ok}A: b\rContent-Length: 0\r\n\r\n`],
  ['a folded header line', `${ok}A: b\r\n c\r\n\r\n`],
  ['a header without a colon', `${ok}A\r\n\r\n`],
  ['a header without a name', `${ok}: a\r\n\r\n`],
  ['a space before the colon', `${ok}Content-Length : 1\r\n\r\nx`],
  ['a NUL in a value', `${ok}A: b\0\r\n\r\n`],
  ['a negative length', `${ok}Content-Length: -1\r\n\r\n`],
  ['a length behind a tab', `${ok}Content-Length:\t1\r\n\r\nx`],
  ['a length with a sign', `${ok}Content-Length: +1\r\n\r\nx`],
  ['a length in hexadecimal', `${ok}Content-Length: 0x1\r\n\r\nx`],
  ['a length that is empty', `${ok}Content-Length:\r\n\r\n`],
  ['a length beyond counting', `${ok}Content-Length: 99999999999999999999\r\n\r\n`],
  ['two lengths', `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx`],
  ['one length twice', `${ok}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`],
  ['a list of lengths', `${ok}Content-Length: 1, 1\r\n\r\nx`],
  ['a length and chunks', `${ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['chunks that are packed again', `${ok}Transfer-Encoding: chunked, gzip\r\n\r\n`],
  ['chunks in chunks', `${ok}Transfer-Encoding: chunked, chunked\r\n\r\n`],
  ['a change of protocol', 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['chunks behind a tab', `${ok}Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n`],
  ['hints of 1.0', `HTTP/1.0 103 Early\r\n\r\n${ok}Content-Length: 0\r\n\r\n`],
  ['hints without end', 'HTTP/1.1 103 Early\r\n\r\n'.repeat(17)],
  ['a head without end', `${ok}A: ${'b'.repeat(17_000)}`],
  ['a head that is too long', `${ok}A: ${'b'.repeat(17_000)}\r\n\r\n`],
  ['a chunk without a size', `${chunked}\r\nabc\r\n0\r\n\r\n`],
  ['a chunk with a size that is none', `${chunked}x\r\nabc\r\n0\r\n\r\n`],
  ['a chunk with a negative size', `${chunked}-1\r\n`],
  ['a chunk with a space behind its size', `${chunked}3 \r\nabc\r\n0\r\n\r\n`],
  ['a chunk with a size beyond counting', `${chunked}${'f'.repeat(17)}\r\n`],
  ['a chunk that is longer than its size', `${chunked}2\r\nabc\r\n0\r\n\r\n`],
  ['a size line that ends without CR', `${chunked}3\nabc\r\n0\r\n\r\n`],
  ['a chunk that ends without CR', `${chunked}3\r\nabc\n0\r\n\r\n`],
  ['an extension with a NUL', `${chunked}3;a\0\r\nabc\r\n0\r\n\r\n`],
  ['an extension without end', `${chunked}3;${'a'.repeat(17_000)}`],
  ['extensions without end', `${chunked}${`1;${'a'.repeat(999)}\r\nx\r\n`.repeat(17)}0\r\n\r\n`],
  ['a trailer that is no header', `${chunked}0\r\nx\r\n\r\n`],
  ['a length in the trailers', `${chunked}0\r\nContent-Length: 1\r\n\r\n`],
  ['trailers without end', `${chunked}0\r\n${`A: ${'b'.repeat(997)}\r\n`.repeat(17)}\r\n`],
])('%s is no answer', (_, text) => {
  expect(read(text)).toMatch(/^The response is not valid HTTP: /);
});

test('a header named __proto__ does not change the prototype', () => {
  const answer = read(`${ok}__proto__: a\r\nConstructor: b\r\nContent-Length: 0\r\n\r\n`);
  expect(answer).toMatchObject({ status: 200, headers: { constructor: 'b' } });
  expect(Object.getPrototypeOf((answer as { headers: object }).headers)).toBe(Object.prototype);
});

describe('compared with node:http', () => {
  const status = fc.constantFrom(200, 201, 202, 204, 302, 304, 404, 429, 500, 503, 599);
  const value = fc.string({
    unit: fc.constantFrom('a', 'B', '1', ' ', '\t', ',', ':', 'é', '"'),
    maxLength: 8,
  });
  const extra = fc.tuple(fc.constantFrom('X-A', 'x-a', 'Date', 'Retry-After', 'Set-Cookie'), value);
  const body = fc.string({ unit: fc.constantFrom('a', '\r', '\n', '0', ':', 'é'), maxLength: 40 });
  const framed = fc.tuple(
    fc.constantFrom('length', 'chunks', 'close'),
    body,
    fc.integer({ min: 1, max: 9 }),
  );
  const answers = fc.record({
    status,
    extras: fc.array(extra, { maxLength: 4 }),
    framed,
    method: fc.constantFrom<'GET' | 'HEAD'>('GET', 'GET', 'GET', 'HEAD'),
    hints: fc.boolean(),
  });

  function textOf({
    status,
    extras,
    framed: [kind, body, size],
    method,
    hints,
  }: ReturnType<typeof sample>) {
    const headers = extras.map(([name, text]) => `${name}:${text}\r\n`).join('');
    const start = `${hints ? 'HTTP/1.1 103 Hints\r\nLink: a\r\n\r\n' : ''}HTTP/1.1 ${status} Fine\r\n${headers}`;
    const bare = method === 'HEAD' || status === 204 || status === 304;
    if (kind === 'length')
      return `${start}Content-Length: ${body.length}\r\n\r\n${bare ? '' : body}`;
    if (kind === 'close') return `${start}\r\n${bare ? '' : body}`;
    const parts = body.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    const chunks = parts.map((part) => `${part.length.toString(16)};x=y\r\n${part}\r\n`).join('');
    return `${start}Transfer-Encoding: chunked\r\n\r\n${bare ? '' : `${chunks}0\r\nX-Trail: t\r\n\r\n`}`;
  }
  const sample = () => fc.sample(answers, 1)[0]!;

  test('valid responses are parsed like by node:http, in any chunks', async () => {
    const node = await openNodeReader();
    onTestFinished(() => void node.close());
    await fc.assert(
      fc.asyncProperty(answers, fc.array(fc.nat(), { maxLength: 6 }), async (answer, cuts) => {
        const bytes = Buffer.from(textOf(answer), 'latin1');
        const places = [...new Set(cuts.map((cut) => cut % bytes.length))].toSorted(
          (a, b) => a - b,
        );
        const pieces = [0, ...places].map((at, i) => bytes.subarray(at, places[i] ?? bytes.length));
        const read = readPieces(
          pieces.filter((piece) => piece.length > 0),
          { isHeadOnly: answer.method === 'HEAD', isClosed: true },
        );
        const byNode = await node.read(bytes, answer.method);
        expect(byNode).toBeDefined();
        expect(read).toMatchObject(byNode!);
      }),
      { numRuns: 600 },
    );
  }, 120_000);

  test('fuzz: what node:http rejects is rejected, and what both accept is parsed alike', async () => {
    const node = await openNodeReader();
    onTestFinished(() => void node.close());
    const bit = fc.constantFrom(
      '\r',
      '\n',
      ' ',
      '\t',
      ':',
      ';',
      ',',
      '0',
      '9',
      'a',
      '\0',
      '\x7f',
      'é',
      '\r\n',
      '-',
      'Content-Length: 1\r\n',
    );
    const spoil = fc.tuple(fc.nat(), fc.nat({ max: 2 }), fc.oneof(fc.constant(''), bit));
    let readAlike = 0;
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(
        answers,
        fc.array(spoil, { minLength: 1, maxLength: 2 }),
        async (answer, spoils) => {
          let text = textOf(answer);
          for (const [place, cut, put] of spoils) {
            const at = place % text.length;
            text = text.slice(0, at) + put + text.slice(at + cut);
          }
          const bytes = Buffer.from(text, 'latin1');
          const options = { isHeadOnly: answer.method === 'HEAD', isClosed: true };
          const read = readPieces(singly(bytes), options);
          if (typeof read === 'string') return void refused++;
          readAlike++;
          // Node says nothing of an answer when there is something behind it.
          const byNode = await node.read(bytes.subarray(0, read.pieces), answer.method);
          expect(byNode).toBeDefined();
          expect(read).toMatchObject(byNode!);
        },
      ),
      { numRuns: 1_500 },
    );
    expect(readAlike).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(100);
  }, 120_000);
});
