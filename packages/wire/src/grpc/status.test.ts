import fc from 'fast-check';
import { expect, test } from 'vitest';
import { failed, ok, percentEncoded, trailersOf } from './status.js';

test('a plain text travels as it is', () => {
  expect(percentEncoded('No record "k" in people (yet); try ~1 s later.')).toBe(
    'No record "k" in people (yet); try ~1 s later.',
  );
  expect(percentEncoded('')).toBe('');
});

test('what a header cannot carry is escaped', () => {
  expect(percentEncoded('100% ü\n')).toBe('100%25 %C3%BC%0A');
  expect(percentEncoded(' edge ')).toBe('%20edge%20');
  expect(percentEncoded('\ud800')).toBe('%EF%BF%BD');
});

test('any text comes back, in characters that every header takes', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 60 });
  fc.assert(
    fc.property(text, (message) => {
      const encoded = percentEncoded(message);
      expect(encoded).toMatch(/^$|^[!-~]$|^[!-~][ -~]*[!-~]$/);
      expect(decodeURIComponent(encoded)).toBe(message.toWellFormed());
    }),
  );
});

test('trailers tell the code, the text and the details without padding', () => {
  expect(trailersOf(ok)).toEqual({ 'grpc-status': '0' });
  expect(trailersOf(failed('NOT_FOUND', 'gone'))).toEqual({
    'grpc-status': '5',
    'grpc-message': 'gone',
  });
  expect(trailersOf({ code: 3, message: '', details: Buffer.from([1]) })).toMatchObject({
    'grpc-status-details-bin': 'AQ',
  });
});
