import { once } from 'node:events';
import { connect, type OutgoingHttpHeaders } from 'node:http2';
import { createServer, type AddressInfo } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { emptySettings, framesOf, frameTypes, preface } from '../grpc/frames.test-support.js';
import { headerBlock, HpackDecoder } from './hpack.js';

type Pair = [name: string, value: string];

function decode(decoder: HpackDecoder, block: Buffer): Pair[] {
  const pairs: Pair[] = [];
  decoder.decode(block, 0, block.length, {
    take: ({ name, value }) => void pairs.push([name, value]),
  });
  return pairs;
}

const hex = (text: string) => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
const pairsOf = (text: string): Pair[] =>
  text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/(?<=.): /) as Pair);

// RFC 7541, Appendix C.2 to C.4.
const examples: [section: string, blocks: [block: string, headers: string][]][] = [
  [
    'C.2.1',
    [
      [
        '400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572',
        'custom-key: custom-header',
      ],
    ],
  ],
  ['C.2.2', [['040c 2f73 616d 706c 652f 7061 7468', ':path: /sample/path']]],
  ['C.2.3', [['1008 7061 7373 776f 7264 0673 6563 7265 74', 'password: secret']]],
  ['C.2.4', [['82', ':method: GET']]],
  [
    'C.3',
    [
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        ':method: GET\n:scheme: http\n:path: /\n:authority: www.example.com',
      ],
      [
        '8286 84be 5808 6e6f 2d63 6163 6865',
        ':method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache',
      ],
      [
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
        ':method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value',
      ],
    ],
  ],
  [
    'C.4',
    [
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        ':method: GET\n:scheme: http\n:path: /\n:authority: www.example.com',
      ],
      [
        '8286 84be 5886 a8eb 1064 9cbf',
        ':method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache',
      ],
      [
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
        ':method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value',
      ],
    ],
  ],
];

test.each(examples)('RFC 7541 example %s decodes as specified', (_section, blocks) => {
  const decoder = new HpackDecoder();
  for (const [block, headers] of blocks) {
    expect(decode(decoder, hex(block))).toEqual(pairsOf(headers));
  }
});

// C.5 and C.6 have a table of 256 bytes, so that fields are thrown out of it.
const cookie = 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1';
const evicting: [section: string, blocks: string[]][] = [
  [
    'C.5',
    [
      `3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
       2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
      '4803 3330 37c1 c0bf',
      `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04
       677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49
       553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31`,
    ],
  ],
  [
    'C.6',
    [
      `3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
       2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
      '4883 640e ffc1 c0bf',
      `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
       821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed
       4ee5 b106 3d50 07`,
    ],
  ],
];

test.each(evicting)('RFC 7541 example %s evicts entries as specified', (_section, blocks) => {
  const decoder = new HpackDecoder();
  const [first, second, third] = blocks.map((block) => decode(decoder, hex(block)));
  const common: Pair[] = [
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['location', 'https://www.example.com'],
  ];
  expect(first).toEqual([[':status', '302'], ...common]);
  expect(second).toEqual([[':status', '307'], ...common]);
  expect(third).toEqual([
    [':status', '200'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
    ['location', 'https://www.example.com'],
    ['content-encoding', 'gzip'],
    ['set-cookie', cookie],
  ]);
});

const broken: [what: string, block: string][] = [
  ['index 0', '80'],
  ['an index that nothing has', 'be'],
  ['a name that nothing has', '7f 00 01 61'],
  ['a number without end', 'ff ff ff'],
  ['a number that is too large', 'ff ff ff ff ff ff 0f'],
  ['a name that ends early', '00 05 61'],
  ['a field without a value', '00 01 61'],
  ['a value that ends early', '00 01 61 7f'],
  ['a table larger than allowed', '3f e2 1f'],
  ['a table resized after a field', '82 20'],
  ['the end in the middle of a string', '00 01 61 84 ff ff ff ff'],
  ['padding that is not of ones', '00 01 61 81 00'],
  ['padding of a whole byte', '00 01 61 82 1f ff'],
];

test.each(broken)('%s is a COMPRESSION_ERROR', (_what, block) => {
  expect(() => decode(new HpackDecoder(), hex(block))).toThrow(
    expect.objectContaining({ code: 'COMPRESSION_ERROR' }),
  );
});

/** The header blocks that node's HTTP/2 makes of these headers on one connection. */
async function blocksOf(requests: readonly OutgoingHttpHeaders[]): Promise<Buffer[]> {
  let received = Buffer.alloc(0);
  const server = createServer((socket) => {
    socket.on('error', () => undefined).write(emptySettings);
    socket.on('data', (chunk: Buffer) => (received = Buffer.concat([received, chunk])));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  session.on('error', () => undefined);
  await once(session, 'remoteSettings');
  for (const headers of requests) {
    session.request(headers, { endStream: true }).on('error', () => undefined);
  }
  const blocks = () =>
    framesOf(received.subarray(preface.length))
      .filter(({ type }) => type === frameTypes.headers)
      .map(({ payload }) => payload);
  await expect.poll(() => blocks().length, { interval: 1 }).toBe(requests.length);
  session.destroy();
  server.close();
  return blocks();
}

test('header blocks encoded by node:http2 are decoded', async () => {
  const name = fc.stringMatching(/^x-[a-z0-9_.-]{1,12}$/);
  const value = fc.stringMatching(/^(?:[!-~](?:[ -~]{0,60}[!-~])?)?$/);
  const request = fc.array(fc.tuple(name, value), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 12 }), async (lists) => {
      const requests = lists.map((list) => Object.fromEntries(list));
      const decoder = new HpackDecoder();
      const blocks = await blocksOf(requests);
      for (const [i, block] of blocks.entries()) {
        const own = decode(decoder, block).filter(([each]) => each.startsWith('x-'));
        expect(own).toEqual(Object.entries(requests[i]!));
      }
    }),
    { numRuns: 25 },
  );
});

test('every valid header byte is decoded from Huffman code', async () => {
  const letters = Array.from({ length: 224 }, (_, i) => String.fromCharCode(i + 32)).filter(
    (letter) => letter !== '\x7f',
  );
  // Letters of five bits around it make the code worth while.
  const values = letters.map((letter) => `${'e'.repeat(20)}${letter}${'a'.repeat(20)}`);
  const [block] = await blocksOf([Object.fromEntries(values.map((value, i) => [`x${i}`, value]))]);
  const own = decode(new HpackDecoder(), block!).filter(([name]) => name.startsWith('x'));
  expect(own.map(([, value]) => value)).toEqual(values);
  expect(block!.length).toBeLessThan(values.join('').length);
});

test('blocks of our encoder are decoded, at any length', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,200}$/);
  const value = fc.string({
    unit: fc.integer({ min: 32, max: 255 }).map((c) => String.fromCharCode(c)),
    maxLength: 400,
  });
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(name, value), { selector: ([key]) => key }), (pairs) => {
      const block = headerBlock(Object.fromEntries(pairs));
      expect(Object.fromEntries(decode(new HpackDecoder(), block))).toEqual(
        Object.fromEntries(pairs),
      );
    }),
    { numRuns: 100 },
  );
  expect(headerBlock({ ':status': '200' })).toEqual(hex('88'));
});

test('fuzz: random bytes are decoded or rejected with a ConnectionError', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), (blocks) => {
      const decoder = new HpackDecoder();
      try {
        for (const block of blocks) decode(decoder, Buffer.from(block));
      } catch (error) {
        expect(error).toMatchObject({ code: 'COMPRESSION_ERROR' });
      }
    }),
    { numRuns: 2_000 },
  );
});
