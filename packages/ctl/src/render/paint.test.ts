import { expect, test } from 'vitest';
import { painter, plain, wantsColour } from './paint.js';

test('colour follows the stream unless the environment says otherwise', () => {
  expect(wantsColour({}, true)).toBe(true);
  expect(wantsColour({}, false)).toBe(false);
  expect(wantsColour({ TERM: 'dumb' }, true)).toBe(false);
  expect(wantsColour({ NO_COLOR: '1' }, true)).toBe(false);
  expect(wantsColour({ NO_COLOR: '' }, true)).toBe(true);
  expect(wantsColour({ FORCE_COLOR: '1' }, false)).toBe(true);
  expect(wantsColour({ FORCE_COLOR: '' }, false)).toBe(true);
  expect(wantsColour({ FORCE_COLOR: '0' }, true)).toBe(false);
});

test('NO_COLOR wins over FORCE_COLOR', () => {
  expect(wantsColour({ NO_COLOR: '1', FORCE_COLOR: '1' }, true)).toBe(false);
});

test('a tone is put around the text and taken off again', () => {
  expect(painter('bad', 'no')).toBe('\u001B[31mno\u001B[39m');
  expect(plain('bad', 'no')).toBe('no');
});
