import { expect, test } from 'vitest';
import { widthsIn } from './column-widths.js';

test('widthsIn: keeps widths in range and drops the rest', () => {
  expect(widthsIn('{"name":120,"age":1,"city":"wide"}')).toEqual({ name: 120 });
  expect(widthsIn(null)).toEqual({});
  expect(widthsIn('[')).toEqual({});
  expect(widthsIn('null')).toEqual({});
});
