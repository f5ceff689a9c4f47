import { expect, test } from 'vitest';
import { operationsIn } from '../api/operations.js';
import { featuresOf } from './features.js';

test('operationsIn: reads paths and methods, and nothing outside of paths', () => {
  const document = [
    'openapi: 3.1.0',
    'paths:',
    '  /v1/queues/{queue}/workers:',
    '    parameters: []',
    '    get:',
    '      summary: x',
    "  '/v1/tasks/{id}:cancel':",
    '    post:',
    'components:',
    '  /not/a/path:',
    '    get:',
  ].join('\n');
  const operations = operationsIn(document);
  expect([...operations]).toEqual(['GET /v1/queues/{}/workers', 'POST /v1/tasks/{}:cancel']);
  expect(featuresOf(operations)).toMatchObject({ workers: true, tasks: false, metrics: false });
});
