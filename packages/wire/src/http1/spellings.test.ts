import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openOutbound, recordingConnect, startHttp } from '../../test/http1/loopback.js';
import { callbackPolicy, webhookGuard, type Guard } from '@millrace/kit/outbound';

/** Lets every URL through to the addresses, which are what this file is about. */
const anyUrl: Guard = () => ({ policy: callbackPolicy() });

const byte = fc.integer({ min: 0, max: 255 });
type Octets = [number, number, number, number];

const blockedIpv4: fc.Arbitrary<Octets> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Octets>([127, 0, 0, 1]) },
  fc.tuple(fc.constantFrom(0, 10, 127), byte, byte, byte),
  fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), byte, byte),
  fc.tuple(fc.constant(192), fc.constant(168), byte, byte),
  fc.tuple(fc.constant(169), fc.constant(254), byte, byte),
  fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), byte, byte),
  fc.tuple(fc.integer({ min: 224, max: 255 }), byte, byte, byte),
);

const linkLocal: fc.Arbitrary<Octets> = fc.tuple(fc.constant(169), fc.constant(254), byte, byte);

const number = (value: number) =>
  fc.constantFrom(
    String(value),
    `0${value.toString(8)}`,
    `000${value.toString(8)}`,
    `0x${value.toString(16)}`,
    `0X${value.toString(16).toUpperCase()}`,
    `0x00${value.toString(16)}`,
  );

const numbers = (...values: number[]) =>
  fc.tuple(...values.map(number)).map((parts) => parts.join('.'));

/** An IPv4 address in one to four parts, each in any base. */
const dotted = ([a, b, c, d]: Octets) =>
  fc.oneof(
    fc.constant([a, b, c, d].join('.')),
    numbers(a, b, c, d),
    numbers(a, b, c * 256 + d),
    numbers(a, (b * 256 + c) * 256 + d),
    numbers(((a * 256 + b) * 256 + c) * 256 + d),
  );

/** An IPv6 address that stands for the IPv4 one. */
const transition = ([a, b, c, d]: Octets) => {
  const high = (a * 256 + b).toString(16);
  const low = (c * 256 + d).toString(16);
  return fc
    .constantFrom(
      `::ffff:${a}.${b}.${c}.${d}`,
      `::ffff:${high}:${low}`,
      `0:0:0:0:0:FFFF:${high}:${low}`,
      `::${high}:${low}`,
      `::ffff:0:${high}:${low}`,
      `64:ff9b::${high}:${low}`,
      `64:ff9b::${a}.${b}.${c}.${d}`,
      `2002:${high}:${low}::`,
    )
    .map((text) => `[${text}]`);
};

const fullWidth = (text: string) =>
  text.replace(/[0-9a-z]/gi, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0));
const percent = (text: string) =>
  text.replace(/./g, (letter) => `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}`);

const disguise = fc.constantFrom<(host: string) => string>(
  (host) => host,
  (host) => host.toUpperCase(),
  (host) => `${host}.`,
  (host) => `${host}..`,
  (host) => (host.startsWith('[') ? host : fullWidth(host)),
  (host) => (host.startsWith('[') ? host : percent(host)),
  (host) => host.replaceAll('.', '。'),
  (host) => host.replaceAll('.', '%2e'),
  (host) => `\t${host}\n`,
  (host) => `${host}\u00ad`,
  (host) => `user@${host}`,
  (host) => `example.com:80@${host}`,
  (host) => `example.com%40${host}`,
  (host) => `[${host}]`,
  // A name: the resolver below answers every one with the address itself.
  (host) => `${host.replace(/[[\]:]/g, '')}.example.test`,
);

const after = fc.constantFrom('/', '', '/a/../b', '?q', '#f', '\\x', '/%2e%2e/', '/;a');
const before = fc.constantFrom('http://', 'HTTP://', 'http:/', 'http:', 'http:\\\\', ' http://');

function spellings(addresses: fc.Arbitrary<Octets>) {
  return addresses.chain((octets) =>
    fc.record({
      address: fc.constant(octets.join('.')),
      host: fc.oneof(dotted(octets), transition(octets)),
      disguise,
      before,
      after,
      withPort: fc.boolean(),
    }),
  );
}

async function everySpellingIsBlocked(guard: Guard, addresses: fc.Arbitrary<Octets>) {
  const server = await startHttp((_, response) => response.end());
  const { dialled, connect } = recordingConnect(() => '127.0.0.1');
  let answer: string[] = [];
  const outbound = openOutbound({ guard, connect, resolver: () => Promise.resolve(answer) });
  const check = fc.asyncProperty(spellings(addresses), async (it) => {
    answer = [it.address];
    const port = it.withPort ? `:${server.port}` : '';
    const url = `${it.before}${it.disguise(it.host)}${port}${it.after}`;
    const outcome = await outbound.request({ url, method: 'POST', body: 'x' });
    expect(outcome, url).toMatchObject({ ok: false, errorType: 'TARGET_BLOCKED' });
    expect(dialled, url).toEqual([]);
  });
  await fc.assert(check, { numRuns: 3_000 });
  expect(server.connections).toBe(0);
}

test('no spelling of an address that is not public opens a socket for a callback', async () => {
  await everySpellingIsBlocked(anyUrl, blockedIpv4);
});

test('no spelling of a link-local address opens a socket for a webhook', async () => {
  await everySpellingIsBlocked(webhookGuard, linkLocal);
});

test('the same spellings do open one where they are allowed, so the check can fail', async () => {
  const server = await startHttp((_, response) => response.end());
  const { dialled, connect } = recordingConnect();
  const resolver = () => Promise.resolve(['127.0.0.1']);
  const outbound = openOutbound({ guard: webhookGuard, connect, resolver });
  const loopback = dotted([127, 0, 0, 1]);
  const check = fc.asyncProperty(loopback, before, async (host, start) => {
    const url = `${start}${host}:${server.port}/`;
    const outcome = await outbound.request({ url, method: 'POST', body: 'x' });
    expect(outcome, url).toMatchObject({ ok: true, status: 200 });
  });
  await fc.assert(check, { numRuns: 200 });
  expect(new Set(dialled)).toEqual(new Set(['127.0.0.1']));
});
