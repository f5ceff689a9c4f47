import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { operationsIn } from '../src/api/operations.js';

test('operationsIn: reads the document that the queue server serves', () => {
  const file = new URL('../../contract/queue.openapi.yaml', import.meta.url);
  const operations = operationsIn(readFileSync(fileURLToPath(file), 'utf8'));
  expect(operations).toContain('POST /v1/queues/{}/tasks');
  expect(operations).toContain('GET /v1/admin/queues/{}/config');
  expect(operations.size).toBeGreaterThan(20);
});
