import { expect, test } from 'vitest';
import { fromBase64, toBase64 } from './payload.js';

test('toBase64: encodes UTF-8', () => {
  expect(toBase64('{"to":"Ada ♥"}')).toBe('eyJ0byI6IkFkYSDimaUifQ==');
});

test('fromBase64: decodes what toBase64 encodes', () => {
  expect(fromBase64(toBase64('{"to":"Ada ♥"}'))).toBe('{"to":"Ada ♥"}');
});
