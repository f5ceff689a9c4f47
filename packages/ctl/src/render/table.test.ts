import { expect, test } from 'vitest';
import { painter, plain } from './paint.js';
import { renderTable, wrapped, type Cell, type Column } from './table.js';

const columns: Column[] = [
  { title: 'QUEUE' },
  { title: 'DEPTH' },
  { title: 'CALLBACK' },
  wrapped('NOTE'),
];
const rows: Cell[][] = [
  [
    'payments.card',
    12_345,
    'https://callbacks.example.com/v1/payments/card/settle-and-notify',
    'paused by the operator until the bank answers again',
  ],
  ['水車小屋', 7, 'http://127.0.0.1:9000/', { text: 'ok', tone: 'ok' }],
  ['mail 📬', 0, 'http://127.0.0.1:9000/mail', ''],
];

test('a table fits 80 columns: long texts are cut or carried on, numbers stand to the right', () => {
  expect(renderTable(columns, rows, { columns: 80, paint: plain })).toBe(
    `
QUEUE          DEPTH  CALLBACK                      NOTE
payments.card  12345  https://callbacks.example.c…  paused by the operator until
                                                    the bank answers again
水車小屋           7  http://127.0.0.1:9000/        ok
mail 📬            0  http://127.0.0.1:9000/mail
`.slice(1),
  );
});

test('at 140 columns the same table needs only one line a row', () => {
  expect(renderTable(columns, rows, { columns: 140, paint: plain })).toBe(
    `
QUEUE          DEPTH  CALLBACK                                                          NOTE
payments.card  12345  https://callbacks.example.com/v1/payments/card/settle-and-notify  paused by the operator until the bank answers again
水車小屋           7  http://127.0.0.1:9000/                                            ok
mail 📬            0  http://127.0.0.1:9000/mail
`.slice(1),
  );
});

test('a pipe gets whole texts', () => {
  const long = 'x'.repeat(500);
  const text = renderTable([{ title: '' }], [[long]], { columns: Infinity, paint: plain });
  expect(text).toBe(`${long}\n`);
});

test('colour does not count as width', () => {
  const row: Cell[] = [{ text: 'ok', tone: 'ok' }, 'free'];
  const text = renderTable([{ title: '' }, { title: '' }], [row], { columns: 8, paint: painter });
  expect(text).toBe('\u001B[32mok\u001B[39m  free\n');
});

test('an escape sequence in a cell is shown, not obeyed', () => {
  const text = renderTable([{ title: '' }], [['\u001B[2J\nx']], { columns: 80, paint: plain });
  expect(text).toBe('␛[2J␊x\n');
});

test('a table without rows is its heading, one without titles has none', () => {
  const sheet = { columns: 80, paint: plain };
  expect(renderTable([{ title: 'ID' }, { title: 'TIER' }], [], sheet)).toBe('ID  TIER\n');
  expect(renderTable([{ title: '' }], [], sheet)).toBe('');
});

test('on a screen too narrow for anything the columns keep four characters', () => {
  const text = renderTable([{ title: '' }, { title: '' }], [['abcdefgh', 'abcdefgh']], {
    columns: 3,
    paint: plain,
  });
  expect(text).toBe('abc…  abc…\n');
});
