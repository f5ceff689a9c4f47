import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { importTexts } from './import-items.js';

/** The elements of a JSON array that arrives in two parts. */
async function elementsOf(text: string): Promise<unknown[]> {
  const parts = [text.slice(0, 5), text.slice(5)].map((part) => Buffer.from(part));
  const options = { format: 'json', documents: false, types: undefined, place: 'a.json' } as const;
  const found: unknown[] = [];
  for await (const { text: one } of importTexts(Readable.from(parts), options)) {
    found.push(JSON.parse(one as string));
  }
  return found;
}

describe('import: JSON arrays', () => {
  test('elements are read one by one', async () => {
    const list = [{ a: 1 }, { a: 'x],"\\', b: [1, { c: [] }] }];
    expect(await elementsOf(JSON.stringify(list))).toEqual(list);
    expect(await elementsOf(`\n[\n  ${JSON.stringify(list[1])}\n]\n`)).toEqual([list[1]]);
    expect(await elementsOf(' [ ] ')).toEqual([]);
  });

  test.each(['[{},]', '[,{}]', '[{},,{}]', '[{}', '[{}] 1'])('refuses %s', async (text) => {
    await expect(elementsOf(text)).rejects.toMatchObject({ code: 'BAD_FILE' });
  });
});
