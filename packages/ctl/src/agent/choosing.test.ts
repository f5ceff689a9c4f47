import { Refusal } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import { tellingIds } from '../base/list-text.js';
import { chosen } from './choosing.js';

const all = [
  { id: '01K9ZQ4M7T3V8X2B6C0D5E1F9G', name: 'retry-upload' },
  { id: '01K9ZQ5A2N4P6R8S0T1V3W5X7Y', name: 'docs' },
  { id: '01K9ZR0B1C2D3E4F5G6H7J8K9M', name: 'docs' },
  { id: '02K9ZR0B1C2D3E4F5G6H7J8K9M', name: '01K9ZQ4M' },
];
const wording = { kind: 'agent', code: 'SESSION_NOT_FOUND', list: 'ctl agent list' };

function refusalOf(words: string): Refusal {
  try {
    chosen(all, words, wording);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error(`"${words}" was found`);
}

test.for([
  ['01K9ZQ4M7T3V8X2B6C0D5E1F9G', 0],
  ['retry-upload', 0],
  ['01K9ZQ5', 1],
  ['01k9zr', 2],
  // A name comes before the beginning of an id.
  ['01K9ZQ4M', 3],
] as const)('"%s" is one of them', ([words, at]) => {
  expect(chosen(all, words, wording)).toBe(all[at]);
});

test('a name or a beginning that fits several is refused with all of them', () => {
  const byName = refusalOf('docs');
  expect(byName.code).toBe('AMBIGUOUS');
  expect(byName.detail).toBe(
    '"docs" matches 2: 01K9ZQ5A2N4P6R8S0T1V3W5X7Y (docs), ' +
      '01K9ZR0B1C2D3E4F5G6H7J8K9M (docs). Use the id, or a longer prefix of it.',
  );
  expect(refusalOf('01K9ZQ').detail).toContain('matches 2');
});

test('what is not there is refused, with the nearest name or where to look', () => {
  expect(refusalOf('dosc')).toMatchObject({
    code: 'SESSION_NOT_FOUND',
    detail: 'no agent is called "dosc"; did you mean "docs"?',
  });
  expect(refusalOf('').detail).toBe('no agent is called "". List them all with `ctl agent list`.');
  expect(refusalOf('quite-another').detail).toMatch(/List them all with `ctl agent list`\.$/);
});

test('ids are shortened as far as each can be reported from the others', () => {
  const short = tellingIds(['01K9ZQ4M7T3V', '01K9ZQ4M7T4V', '01K9ZR0B1C2D', '0'], {
    columns: 80,
  });
  expect([...short.values()]).toEqual(['0', '01K9ZQ4M7T3', '01K9ZQ4M7T4', '01K9ZR0B']);
  expect(tellingIds([], { columns: 80 }).size).toBe(0);
  const [whole] = tellingIds(['01K9ZQ4M7T3V'], { columns: Infinity }).values();
  expect(whole).toBe('01K9ZQ4M7T3V');
});

test('of items with one name the live one is meant', () => {
  const isLive = ({ id }: { id: string }) => id === all[2]!.id;
  expect(chosen(all, 'docs', wording, isLive)).toBe(all[2]);
});
