import { expect, test } from 'vitest';
import { FrameWriter } from './stream.js';

const piece = (length: number, fill = 0x61) => Buffer.alloc(length, fill);

function write(writer: FrameWriter, ...pieces: Buffer[]): readonly Uint8Array[] {
  for (const each of pieces) writer.bytes(each, 0, each.length);
  return writer.takeParts();
}

test('slabs of a copied write are reused', () => {
  const writer = new FrameWriter();
  const [first] = write(writer, piece(100));
  writer.settle(true);
  const [second] = write(writer, piece(100));
  expect(second!.buffer).toBe(first!.buffer);
  expect(second!.byteOffset).toBe(first!.byteOffset);
});

test('the bytes of an unfinished write are not overwritten', () => {
  const writer = new FrameWriter();
  const held = write(writer, ...Array.from({ length: 20 }, () => piece(5_000)));
  expect(held.length).toBeGreaterThan(1);
  writer.settle(false);
  for (let n = 0; n < 100; n++) {
    write(writer, ...Array.from({ length: 20 }, () => piece(5_000, 0x62)));
    writer.settle(true);
  }
  expect(Buffer.concat(held).equals(piece(100_000))).toBe(true);
});

test('consecutive large writes reuse the same slabs', () => {
  const writer = new FrameWriter();
  const slabs = new Set<unknown>();
  for (let n = 0; n < 50; n++) {
    const parts = write(writer, ...Array.from({ length: 50 }, () => piece(5_000, n)));
    expect(Buffer.concat(parts).equals(piece(250_000, n))).toBe(true);
    for (const { buffer } of parts) slabs.add(buffer);
    writer.settle(true);
  }
  expect(slabs.size).toBeLessThanOrEqual(6);
});
