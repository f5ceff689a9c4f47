import { expect, test } from 'vitest';
import { daemonFeaturesOf } from './daemon-features.js';

test('daemonFeaturesOf: only what the document lists', () => {
  expect(daemonFeaturesOf(new Set(['GET /api/v1/sessions']))).toEqual({
    questions: false,
    diff: false,
    actions: [],
  });
  const operations = new Set([
    'GET /api/v1/questions',
    'POST /api/v1/questions/{}:answer',
    'GET /api/v1/sessions/{}/diff',
    'POST /api/v1/sessions/{}:merge',
    'POST /api/v1/sessions/{}:commit',
  ]);
  expect(daemonFeaturesOf(operations)).toEqual({
    questions: true,
    diff: true,
    actions: ['commit', 'merge'],
  });
});
