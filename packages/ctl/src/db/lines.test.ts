import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { linesOf } from './lines.js';

async function all(chunks: (Buffer | string)[]): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(Readable.from(chunks))) lines.push(line);
  return lines;
}

test('lines are the same however their bytes arrive', async () => {
  const text = 'eins\r\nzwölf\n\n水車\nlast';
  const bytes = Buffer.from(text);
  const each = Array.from(bytes, (_, i) => bytes.subarray(i, i + 1));
  const expected = ['eins', 'zwölf', '', '水車', 'last'];
  expect(await all([bytes])).toEqual(expected);
  expect(await all(each)).toEqual(expected);
  expect(await all(['a\nb', 'c\n'])).toEqual(['a', 'bc']);
  expect(await all([])).toEqual([]);
});

test('a file that is not there is an error', async () => {
  const lines = linesOf(createReadStream('/nonexistent/x'));
  await expect(lines.next()).rejects.toMatchObject({ code: 'ENOENT' });
});
