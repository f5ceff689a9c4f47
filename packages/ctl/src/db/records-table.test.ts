import { expect, test } from 'vitest';
import { plain } from '../render/paint.js';
import type { Outlet } from '../base/terminal.js';
import { recordsTable } from './records-table.js';

function outlet(columns: number): Outlet {
  return { columns, paint: plain } as Outlet;
}

function record(key: string, data: Record<string, unknown>, at: number) {
  const id = `01J8Z3K4M5N6P7Q8R9S0T1V2W${at}`;
  const time = new Date(0);
  return { id, key, rev: at, data, createdAt: time, updatedAt: time, seq: at };
}

const people = [
  record('ada', { name: 'Ada Lovelace', age: 36, city: 'London', tags: ['math', 'poetry'] }, 1),
  record('grace', { name: 'Grace Hopper', age: 85, city: 'Arlington', notes: 'x'.repeat(90) }, 2),
  record('水', { name: 'line\nbreak', age: 7, open: true, parent: { name: 'Ada' }, none: null }, 3),
];

test('a table of records fits 80 columns and says what it leaves out', () => {
  expect(recordsTable(people, outlet(80))).toBe(
    `
KEY    REV  name          age  city       tags               notes
ada      1  Ada Lovelace   36  London     ["math","poetry"]
grace    2  Grace Hopper   85  Arlington                     xxxxxxxxxxxxxxxxxx…
水       3  line␊break      7
3 more fields: open, parent, none (choose with --fields, or see all with --json)
`.slice(1),
  );
});

test('at 140 columns there is room for all of it', () => {
  expect(recordsTable(people, outlet(140))).toBe(
    `
KEY    REV  name          age  city       tags               notes                                                open  parent          none
ada      1  Ada Lovelace   36  London     ["math","poetry"]
grace    2  Grace Hopper   85  Arlington                     xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
水       3  line␊break      7                                                                                     true  {"name":"Ada"}
`.slice(1),
  );
});

test('records without keys are called by their ids, mixed ones by both', () => {
  const bare = [record('', { n: 1 }, 1)];
  expect(recordsTable(bare, outlet(80))).toBe(
    'ID                          REV  n\n01J8Z3K4M5N6P7Q8R9S0T1V2W1    1  1\n',
  );
  const mixed = recordsTable([record('', { n: 1 }, 1), record('k', { n: 2 }, 2)], outlet(80));
  expect(mixed.split('\n')[0]).toBe('ID                          KEY  REV  n');
});

test('a pipe gets everything whole', () => {
  const table = recordsTable(people, outlet(Infinity));
  expect(table).toContain('x'.repeat(90));
  expect(table).not.toContain('…');
});
