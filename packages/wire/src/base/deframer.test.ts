import fc from 'fast-check';
import { expect, test } from 'vitest';
import { takeBlock, Deframer, isOneMessage } from './messages.js';
import { framed } from '../grpc/transport.test-support.js';

function collecting(maxBytes = 1_000_000) {
  const messages: [text: string, isCompressed: boolean][] = [];
  const takeMessage = (bytes: Buffer, isCompressed: boolean) =>
    void messages.push([bytes.toString('latin1'), isCompressed]);
  const tryReserve = () => true;
  return { messages, deframer: new Deframer({ takeMessage, tryReserve }, maxBytes) };
}

const three = Buffer.concat([
  framed(Buffer.from('first')),
  framed(Buffer.alloc(0)),
  framed(Buffer.from('third, compressed'), 1),
]);
const expected = [
  ['first', false],
  ['', false],
  ['third, compressed', true],
];

test('messages are found when the bytes are split at any offset', () => {
  for (let at = 0; at <= three.length; at++) {
    const { deframer, messages } = collecting();
    expect(deframer.push(three.subarray(0, at))).toBeUndefined();
    expect(deframer.push(three.subarray(at))).toBeUndefined();
    expect(messages).toEqual(expected);
    expect(deframer.hasPartialMessage).toBe(false);
  }
});

test('messages are found byte by byte', () => {
  const { deframer, messages } = collecting();
  for (const byte of three) deframer.push(Buffer.of(byte));
  expect(messages).toEqual(expected);
});

test('the blocks of a dropped message are used again, and nothing of it is seen', () => {
  const dropped = collecting();
  dropped.deframer.push(framed(Buffer.alloc(300_000, 'x')).subarray(0, 290_000));
  dropped.deframer.discard();
  const block = takeBlock();
  expect(block.includes('x')).toBe(true);
  const { deframer, messages } = collecting();
  const text = 'y'.repeat(500_000);
  for (const part of [framed(Buffer.from(text)), framed(Buffer.from('after'))]) deframer.push(part);
  expect(messages).toEqual([
    [text, false],
    ['after', false],
  ]);
});

test('messages are found in chunks of any size', () => {
  const sizes = fc.array(fc.nat({ max: 70_000 }), { minLength: 1, maxLength: 5 });
  const cuts = fc.array(fc.nat({ max: 30_000 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(sizes, cuts, (lengths, pieces) => {
      const sent = lengths.map((length, i) => String.fromCharCode(97 + i).repeat(length));
      const bytes = Buffer.concat(sent.map((text) => framed(Buffer.from(text))));
      const { deframer, messages } = collecting();
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const length = pieces[i % pieces.length]! + 1;
        deframer.push(bytes.subarray(at, at + length));
        at += length;
      }
      expect(messages.map(([text]) => text)).toEqual(sent);
      expect(deframer.hasPartialMessage).toBe(false);
    }),
    { numRuns: 50 },
  );
});

test('an oversized message is rejected by its length prefix', () => {
  const { deframer } = collecting(10);
  const head = framed(Buffer.alloc(11)).subarray(0, 5);
  expect(deframer.push(head)).toMatchObject({ code: 8 });
  expect(collecting(10).deframer.push(framed(Buffer.alloc(10)))).toBeUndefined();
});

test('an unknown compressed flag is rejected', () => {
  expect(collecting().deframer.push(framed(Buffer.from('x'), 2))).toMatchObject({ code: 13 });
});

test('hasPartialMessage is true while a message is incomplete', () => {
  for (let at = 1; at < 10; at++) {
    const { deframer } = collecting();
    deframer.push(framed(Buffer.from('first')).subarray(0, at));
    expect(deframer.hasPartialMessage).toBe(true);
  }
});

test('an announced length does not allocate memory', () => {
  const limit = 512 * 1024 * 1024;
  const head = framed(Buffer.alloc(0));
  head.writeUInt32BE(limit, 1);
  const before = process.memoryUsage().arrayBuffers;
  const waiting = Array.from({ length: 100 }, () => {
    const { deframer } = collecting(limit);
    deframer.push(head);
    deframer.push(Buffer.of(1));
    return deframer;
  });
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8_000_000);
  expect(waiting.every(({ hasPartialMessage }) => hasPartialMessage)).toBe(true);
});

test('isOneMessage accepts exactly one message', () => {
  const one = framed(Buffer.from('one'));
  const within = Buffer.concat([Buffer.of(9), one, Buffer.of(9)]);
  expect(isOneMessage(within, 1, within.length - 1)).toBe(true);
  expect(isOneMessage(framed(Buffer.alloc(0), 1), 0, 5)).toBe(true);
  for (let end = 1; end < one.length; end++) expect(isOneMessage(within, 1, end)).toBe(false);
  expect(isOneMessage(within, 1, within.length)).toBe(false);
  expect(isOneMessage(Buffer.concat([one, one]), 0, 2 * one.length)).toBe(false);
  expect(isOneMessage(framed(Buffer.from('two'), 2), 0, 8)).toBe(false);
});
