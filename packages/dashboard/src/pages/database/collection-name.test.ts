import { expect, test } from 'vitest';
import { collectionNameError } from './collection-name.js';

test.each(['a', 'Orders-2026_eu.west', 'x'.repeat(64)])('collection name: %j is accepted', (name) =>
  expect(collectionNameError(name, ['people'])).toBeUndefined(),
);

test.each([
  ['', 'A name is required.'],
  ['1st', 'starts with a letter'],
  ['two words', 'starts with a letter'],
  ['x'.repeat(65), '1 to 64'],
  ['people', 'The collection people exists already.'],
])('collection name: %j is refused', (name, text) =>
  expect(collectionNameError(name, ['people'])).toContain(text),
);
