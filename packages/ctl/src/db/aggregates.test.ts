import { expect, test } from 'vitest';
import { parseAccumulator } from './reads.js';

test('accumulators have a name, an op and a field', () => {
  expect(parseAccumulator('oldest=max(age)')).toEqual({ name: 'oldest', op: 'max', field: 'age' });
  expect(parseAccumulator('avg(a.b)')).toEqual({ name: 'avg_a.b', op: 'avg', field: 'a.b' });
  expect(parseAccumulator('count')).toEqual({ name: 'count', op: 'count' });
  expect(parseAccumulator('n=count()')).toEqual({ name: 'n', op: 'count' });
  expect(parseAccumulator('have=count(email)')).toEqual({
    name: 'have',
    op: 'count',
    field: 'email',
  });
});

test('what computes nothing is refused', () => {
  expect(() => parseAccumulator('maxx(age)')).toThrow(/is not an aggregate.*did you mean "max"\?$/);
  expect(() => parseAccumulator('max')).toThrow('Write max(field)');
  expect(() => parseAccumulator('a b')).toThrow('is not an aggregate');
});
