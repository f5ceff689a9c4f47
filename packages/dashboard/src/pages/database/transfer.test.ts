import { expect, test, vi } from 'vitest';

vi.mock('./api.js', () => ({
  find: vi.fn(),
  insert: vi.fn((_collection: string, key: string) =>
    key === 'twice' ? Promise.reject(new Error('The key exists.')) : Promise.resolve({}),
  ),
}));
const { csvLines, exportLines, importItems, parseImport } = await import('./transfer.js');
const { find } = await import('./api.js');

test('parseImport: records of an export, documents, and lines that are neither', () => {
  const text = '{"id":"1","key":"a","rev":2,"data":{"n":1}}\n\n{"n":2}\n{\n[1]\n';
  expect(parseImport(text)).toEqual({
    items: [
      { line: 1, key: 'a', data: { n: 1 } },
      { line: 3, key: '', data: { n: 2 } },
    ],
    failures: [
      { line: 4, message: 'is not valid JSON' },
      { line: 5, message: 'must be a JSON object' },
    ],
  });
});

test('parseImport: one JSON array', () => {
  expect(parseImport('[{"n":1},\n{"n":2}]').items).toHaveLength(2);
});

test('parseImport: CSV, and csvLines writes what it reads', () => {
  const text = '$key,name,a.n,zip\nk,"Ada, B",5,"8001"\n,x,1,2,3\n';
  const { items, failures } = parseImport(text);
  expect(items).toEqual([
    { line: 2, key: 'k', data: { name: 'Ada, B', a: { n: 5 }, zip: '8001' } },
  ]);
  expect(failures).toEqual([{ line: 3, message: 'has 5 cells under a header of 4' }]);
  expect(csvLines(items.map((item) => JSON.stringify(item))).join('')).toBe(
    '$key,name,a.n,zip\nk,"Ada, B",5,"8001"\n',
  );
});

test('csvLines: a field that is an object in some records only is JSON in all of them', () => {
  const lines = [{ a: {} }, { a: { b: { c: 1 } } }, { a: 'x' }].map((data) =>
    JSON.stringify({ data }),
  );
  expect(csvLines(lines).join('')).toBe('a\n{}\n"{""b"":{""c"":1}}"\n"""x"""\n');
});

test('importItems: a failure names its line and does not stop the others', async () => {
  const items = [
    { line: 1, key: 'a', data: {} },
    { line: 2, key: 'twice', data: {} },
    { line: 3, key: '', data: {} },
  ];
  expect(await importItems('people', items, () => undefined)).toEqual({
    inserted: 2,
    failures: [{ line: 2, message: 'The key exists.' }],
  });
});

test('exportLines: follows the cursor to the end', async () => {
  const record = { id: '1' } as never;
  vi.mocked(find)
    .mockResolvedValueOnce({ records: [record], next_cursor: 'more' })
    .mockResolvedValueOnce({ records: [record], next_cursor: '' });
  const { lines, isComplete } = await exportLines('people', {}, () => undefined);
  expect([lines, isComplete]).toEqual([['{"id":"1"}\n', '{"id":"1"}\n'], true]);
  expect(vi.mocked(find).mock.calls[1]![1]).toMatchObject({ cursor: 'more' });
});
