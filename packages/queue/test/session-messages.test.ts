import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { OpenRequestSchema, OpenResponseSchema } from '@millrace/contract/queue-grpc';
import { decodeMessage, encodeMessage } from '@millrace/worker';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const prefixBytes = 5;
const payloads = fc.array(
  fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.constantFrom(127, 128, 16_383, 16_384, 70_000).map((length) => new Uint8Array(length)),
  ),
  { maxLength: 5 },
);
const content = fc.dictionary(fc.string(), fc.jsonValue() as fc.Arbitrary<unknown>);

/** A deep comparison of large arrays takes seconds. */
function areSame(some: readonly Uint8Array[], others: readonly Uint8Array[]): boolean {
  return (
    some.length === others.length && some.every((each, i) => Buffer.compare(each, others[i]!) === 0)
  );
}

test('session messages: are those of the proto file, in both directions', () => {
  fc.assert(
    fc.property(content, payloads, (said, bytes) => {
      const json = JSON.stringify(said);
      const framed = encodeMessage({ content: said, payloads: bytes });
      const read = fromBinary(OpenResponseSchema, framed.subarray(prefixBytes));
      expect(new TextDecoder().decode(read.json)).toBe(json);
      expect(areSame(read.payloads, bytes)).toBe(true);
      const message = create(OpenRequestSchema, {
        json: new TextEncoder().encode(json),
        payloads: bytes,
      });
      const back = decodeMessage<object>(Buffer.from(toBinary(OpenRequestSchema, message)));
      expect(JSON.stringify(back.content)).toBe(JSON.stringify(JSON.parse(json)));
      expect(areSame(back.payloads, bytes)).toBe(true);
    }),
    { numRuns: 200 },
  );
});

test('session messages: any bytes are read or refused as a TypeError or a SyntaxError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        decodeMessage(Buffer.from(bytes));
      } catch (error) {
        expect(['TypeError', 'SyntaxError']).toContain((error as Error).name);
      }
    }),
    { numRuns: 2_000 },
  );
});
