import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { cut, printable, printableLines, safeForScreen, widthOf, wrap } from './text.js';

test('an ideograph and an emoji take two columns, a combining mark none', () => {
  expect(widthOf('水車')).toBe(4);
  expect(widthOf('👩‍👩‍👧')).toBe(2);
  expect(widthOf('e\u0301')).toBe(1);
});

test('a text is cut between whole characters', () => {
  expect(cut('millrace', 8)).toBe('millrace');
  expect(cut('millraces', 8)).toBe('millrac…');
  expect(cut('水車小屋', 6)).toBe('水車…');
  expect(cut('👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧', 5)).toBe('👩‍👩‍👧👩‍👩‍👧…');
});

test('a text is wrapped between words, and inside a word only where it must be', () => {
  expect(wrap('stop it or give another address', 12)).toEqual([
    'stop it or',
    'give another',
    'address',
  ]);
  expect(wrap('in /a/very/long/path', 8)).toEqual(['in', '/a/very/', 'long/pat', 'h']);
  expect(wrap('水車', 1)).toEqual(['水車']);
});

test('control characters and direction marks are shown, not obeyed', () => {
  expect(printable('a\u001B[31mb\nc\u007Fd\u009Be\u202Ef')).toBe(
    'a␛[31mb␊c\\u007fd\\u009be\\u202ef',
  );
});

test('safe text: nothing but colours, line breaks and tabs reaches a terminal as it is', () => {
  const bidi = '\u061C\u200E\u200F\u202A\u202E\u2066\u2069';
  const osc = '\u001B]52;c;aGk=\u0007';
  expect(safeForScreen(`\u001B[1;31mred\u001B[0m\ta\r\nb`)).toBe(
    '\u001B[1;31mred\u001B[0m\ta\r\nb',
  );
  expect(safeForScreen(osc)).toBe('\\u001b]52;c;aGk=\\u0007');
  expect(safeForScreen('\u001B[2J\u009B2J\u007F')).toBe('\\u001b[2J\\u009b2J\\u007f');
  expect(safeForScreen(bidi)).toBe('\\u061c\\u200e\\u200f\\u202a\\u202e\\u2066\\u2069');
  expect(printable(bidi)).toBe(safeForScreen(bidi));
  expect(printableLines(`a\n\tb\r\u001B[1m${osc}`)).toBe(
    'a\n\tb\\u000d\\u001b[1m\\u001b]52;c;aGk=\\u0007',
  );
  const text = JSON.stringify({ name: `x\u009B\u202Ey` });
  expect(JSON.parse(safeForScreen(text))).toEqual(JSON.parse(text));
});

test('no text leaves cut or wrap wider than asked, nor loses a character in wrap', () => {
  const texts = fc.string({ unit: 'grapheme' }).map(printable);
  fc.assert(
    fc.property(texts, fc.integer({ min: 4, max: 30 }), (text, width) => {
      expect(widthOf(cut(text, width))).toBeLessThanOrEqual(width);
      const lines = wrap(text, width);
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
      expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
    }),
  );
});
