import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { LineWalker } from './lines.js';

const directory = mkdtempSync(join(tmpdir(), 'mr-lines-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const markers = ['"usage"', '"more"'].map((marker) => Buffer.from(marker));

async function walk(text: string, pieceBytes: number, longest = 1_000, from = 0) {
  const path = join(directory, 'lines');
  writeFileSync(path, text);
  const file = await open(path);
  const lines: [string, number][] = [];
  const broken: [number, string][] = [];
  const visitor = {
    line: (bytes: Buffer, offset: number) => void lines.push([bytes.toString(), offset]),
    broken: (offset: number, reason: string) => void broken.push([offset, reason]),
  };
  const offsets: number[] = [];
  const walker = new LineWalker(pieceBytes, longest);
  const onPiece = (offset: number) => void offsets.push(offset);
  const scanned = await walker.walk(file, from, markers, visitor, onPiece);
  await file.close();
  return { lines, broken, offsets, offset: scanned.offset, rest: scanned.rest?.toString() };
}

/** As one would write it without care for time and memory. */
function plainly(text: string, from: number) {
  const parts = Buffer.from(text).subarray(from).toString().split('\n');
  const last = parts.pop()!;
  const isMarked = (line: string) => markers.some((marker) => line.includes(marker.toString()));
  const lines: [string, number][] = [];
  const broken: number[] = [];
  let offset = from;
  for (const part of parts) {
    const line = part.endsWith('\r') ? part.slice(0, -1) : part;
    if (line !== '' && !(line.startsWith('{') && line.endsWith('}'))) broken.push(offset);
    else if (isMarked(line)) lines.push([line, offset]);
    offset += Buffer.byteLength(part) + 1;
  }
  return { lines, broken, offset, rest: isMarked(last) ? last : undefined };
}

test('whatever the lines and the pieces, every marked line comes once and whole', async () => {
  const word = fc.constantFrom('"usage"', '"more"', '{', '}', 'é', 'x'.repeat(30), '', '\r', '"us');
  const line = fc.oneof(
    fc.array(word, { maxLength: 6 }).map((words) => words.join('')),
    fc.array(word, { maxLength: 6 }).map((words) => `{${words.join('')}}`),
  );
  const text = fc.tuple(fc.array(line, { maxLength: 30 }), fc.boolean());
  await fc.assert(
    fc.asyncProperty(text, fc.integer({ min: 1, max: 200 }), async ([lines, ends], pieceBytes) => {
      const whole = lines.join('\n') + (ends ? '\n' : '');
      const plain = plainly(whole, 0);
      const { broken, offsets, ...seen } = await walk(whole, pieceBytes);
      expect({ ...seen, broken: broken.map(([offset]) => offset) }).toEqual(plain);
      // Wherever it was left off, the rest is the rest.
      for (const from of offsets) {
        const { lines: rest } = await walk(whole, pieceBytes, 1_000, from);
        expect(rest).toEqual(plain.lines.filter(([, offset]) => offset >= from));
      }
    }),
    { numRuns: 150, seed: 20_260_115 },
  );
});

test('a line longer than any may be is passed over and named', async () => {
  const long = `{"usage":"${'x'.repeat(500)}"}`;
  const text = `{"usage":1}\n${long}\n{"usage":2}\n`;
  const { lines, broken, offset } = await walk(text, 64, 256);
  expect(lines.map(([line]) => line)).toEqual(['{"usage":1}', '{"usage":2}']);
  expect(broken).toEqual([[12, 'is longer than 256 bytes']]);
  expect(offset).toBe(text.length);
  // Its end has not come yet: it is left as any half line is.
  const half = await walk(`{"usage":1}\n${long}`, 64, 256);
  expect([half.offset, half.broken]).toEqual([12, []]);
});
