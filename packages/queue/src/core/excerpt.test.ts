import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cutText, textExcerpt } from './outcome.js';

const bytesOf = (text: string) => new TextEncoder().encode(text);

test('a short text stays as it is', () => {
  expect(cutText('Größe 😀', 1024)).toBe('Größe 😀');
  expect(cutText('', 1024)).toBe('');
});

test.each([
  ['abcdef', 4, 'abcd'],
  ['aöb', 2, 'a'],
  ['aöb', 3, 'aö'],
  ['😀😀', 7, '😀'],
  ['😀', 3, ''],
  ['x'.repeat(2000), 1024, 'x'.repeat(1024)],
])('"%s" is cut to %i bytes between characters', (text, most, expected) => {
  expect(cutText(text, most)).toBe(expected);
});

test('excerpt: characters that databases reject are replaced', () => {
  expect(cutText('a\0b\uD800c', 100)).toBe('a\u{fffd}b\u{fffd}c');
});

test('bytes that are no text are shown as far as they are', () => {
  expect(textExcerpt(Uint8Array.of(0x61, 0xff, 0x62), 100)).toBe('a\u{fffd}b');
  expect(textExcerpt(new Uint8Array(0), 100)).toBe('');
});

test('a character that the cut splits is left out, not mangled', () => {
  expect(textExcerpt(bytesOf('ab€'), 4)).toBe('ab');
  expect(textExcerpt(bytesOf('ab€'), 5)).toBe('ab€');
});

test('an excerpt is always text that fits', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 80 }),
      fc.integer({ min: 0, max: 40 }),
      (bytes, most) => {
        const text = textExcerpt(bytes, most);
        expect(text.isWellFormed()).toBe(true);
        expect(text).not.toContain('\0');
        expect(bytesOf(text).length).toBeLessThanOrEqual(most);
      },
    ),
  );
});

test('text is never changed where it fits', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const shown = text.replaceAll('\0', '\u{fffd}').replace(/^\u{feff}/u, '');
      expect(textExcerpt(bytesOf(text), 10_000)).toBe(shown);
    }),
  );
});
