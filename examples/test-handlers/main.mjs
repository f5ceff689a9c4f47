// A test of a handler with a queue in memory: see docs/how-to/test-your-handlers.md.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openQueue } from '@millrace/queue';
import { defineTasks } from '@millrace/worker';
import { z } from 'zod';

const tasks = defineTasks({
  'mail.remind': { payload: z.object({ to: z.string() }), queue: 'mail' },
});

await test('a reminder is sent after two days', async () => {
  const queue = await openQueue({ memory: true, clock: 'manual' }, tasks);
  const sent = [];
  queue.createWorker({ queue: 'mail' }, { 'mail.remind': ({ payload }) => sent.push(payload.to) });
  await queue.submit('mail.remind', { to: 'ada@example.com' }, { delayMs: 2 * 86_400_000 });
  await queue.drain();
  assert.deepEqual(sent, []);
  await queue.advance('2 days');
  assert.deepEqual(sent, ['ada@example.com']);
  await queue.close();
});
