import { expect, test } from 'vitest';
import { shownPayload, toBase64 } from './payload.js';

test('toBase64: round-trips text outside ASCII', () => {
  const text = 'Grüße, 世界 🌍';
  expect(toBase64(text)).toBe(Buffer.from(text).toString('base64'));
  expect(shownPayload(toBase64(text))).toMatchObject({ text, isCut: false });
});

test('shownPayload: pretty-prints JSON', () => {
  expect(shownPayload(toBase64('{"a":1}')).text).toBe('{\n  "a": 1\n}');
});

test('shownPayload: reports only the size of bytes that are not UTF-8', () => {
  expect(shownPayload('/w==')).toEqual({ text: undefined, bytes: 1, isCut: false });
});

test('shownPayload: truncates a long text', () => {
  const { text, bytes, isCut } = shownPayload(toBase64('x'.repeat(100_000)));
  expect([text?.length, bytes, isCut]).toEqual([20_000, 100_000, true]);
});
