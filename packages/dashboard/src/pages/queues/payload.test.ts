import { expect, test } from 'vitest';
import { shownPayload, toBase64 } from './payload.js';

test('a text comes back as it was, also beyond ASCII', () => {
  const text = 'Grüße, 世界 🌍';
  expect(toBase64(text)).toBe(Buffer.from(text).toString('base64'));
  expect(shownPayload(toBase64(text))).toMatchObject({ text, isCut: false });
});

test('JSON is laid out', () => {
  expect(shownPayload(toBase64('{"a":1}')).text).toBe('{\n  "a": 1\n}');
});

test('bytes that are no text are only counted', () => {
  expect(shownPayload('/w==')).toEqual({ text: undefined, bytes: 1, isCut: false });
});

test('a long text is cut', () => {
  const { text, bytes, isCut } = shownPayload(toBase64('x'.repeat(100_000)));
  expect([text?.length, bytes, isCut]).toEqual([20_000, 100_000, true]);
});
