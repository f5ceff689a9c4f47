import fc from 'fast-check';
import { expect, test } from 'vitest';
import { errorStatus, ok, percentEncoded, trailersOf } from './messages.js';

test('grpc-message: printable ASCII is not encoded', () => {
  expect(percentEncoded('No record "k" in people (yet); try ~1 s later.')).toBe(
    'No record "k" in people (yet); try ~1 s later.',
  );
  expect(percentEncoded('')).toBe('');
});

test('grpc-message: other characters are percent-encoded', () => {
  expect(percentEncoded('100% ü\n')).toBe('100%25 %C3%BC%0A');
  expect(percentEncoded(' edge ')).toBe('%20edge%20');
  expect(percentEncoded('\ud800')).toBe('%EF%BF%BD');
});

test('grpc-message: any text round-trips in printable ASCII', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 60 });
  fc.assert(
    fc.property(text, (message) => {
      const encoded = percentEncoded(message);
      expect(encoded).toMatch(/^$|^[!-~]$|^[!-~][ -~]*[!-~]$/);
      expect(decodeURIComponent(encoded)).toBe(message.toWellFormed());
    }),
  );
});

test('trailers contain the code, the message and unpadded details', () => {
  expect(trailersOf(ok)).toEqual({ 'grpc-status': '0' });
  expect(trailersOf(errorStatus('NOT_FOUND', 'gone'))).toEqual({
    'grpc-status': '5',
    'grpc-message': 'gone',
  });
  expect(trailersOf({ code: 3, message: '', details: Buffer.from([1]) })).toMatchObject({
    'grpc-status-details-bin': 'AQ',
  });
});
