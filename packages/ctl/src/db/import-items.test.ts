import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { CellTypes } from '@millrace/contract/lists/csv';
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

/** The documents of a CSV file. */
async function rowsOf(text: string, types?: CellTypes): Promise<unknown[]> {
  const options = { format: 'csv', documents: true, types, place: 'a.csv' } as const;
  const found: unknown[] = [];
  for await (const { text: one } of importTexts(Readable.from([text]), options)) {
    if (typeof one !== 'string') throw one;
    found.push(JSON.parse(one));
  }
  return found;
}

test('import: a CSV header sets nothing but fields of the record', async () => {
  expect(await rowsOf('toString.x,constructor\n1,2\n')).toEqual([
    { toString: { x: 1 }, constructor: 2 },
  ]);
  expect(Object.prototype.toString).not.toHaveProperty('x');
  await expect(rowsOf('a.__proto__.x\n1\n')).rejects.toThrow('has a header "a.__proto__.x"');
  expect({}).not.toHaveProperty('x');
});

describe('import: numbers in CSV', () => {
  test.each(['1234567890123456789', '9007199254740993.0', '-9007199254740993', '1e400'])(
    '%s, which a number cannot be, stays text',
    async (text) => {
      expect(await rowsOf(`n\n${text}\n`)).toEqual([{ n: text }]);
      await expect(rowsOf(`n\n${text}\n`, { n: 'number' })).rejects.toThrow(
        `"${text}" in n is not a number that can be stored exactly`,
      );
    },
  );

  test.each([9007199254740991, 2 ** 60, 1e25, -1.5e-7, 0.1])('%d is a number', async (n) => {
    expect(await rowsOf(`n\n${n}\n`)).toEqual([{ n }]);
    expect(await rowsOf(`n\n${n}\n`, { n: 'number' })).toEqual([{ n }]);
  });
});
