import { expect, test } from 'vitest';
import { toBase64 } from './payload.js';

test('toBase64: encodes UTF-8', () => {
  expect(toBase64('{"to":"Ada ♥"}')).toBe('eyJ0byI6IkFkYSDimaUifQ==');
});
