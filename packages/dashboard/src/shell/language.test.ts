import { expect, test } from 'vitest';
import { repairLanguage } from './language.js';

test.each([
  ['en-US@posix', 'en-US'],
  ['de-CH', 'de-CH'],
])('language: %s is %s', (given, expected) => {
  const navigator = { language: given };
  repairLanguage(navigator);
  expect(navigator.language).toBe(expected);
});
