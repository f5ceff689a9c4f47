import { expect, test } from 'vitest';
import { answer, newScene } from './delivery.test-support.js';

test('deliveries, retries, deaths and batches are counted', async () => {
  const { world, putQueue, submit, outbound, metrics } = await newScene();
  await putQueue({ retry: { max_attempts: 2, initial_backoff_ms: 10 } });
  let answers = [200, 500, 500, 400, 202];
  outbound.handler = () => {
    const status = answers.shift()!;
    return answer(status, status === 202 ? { 'x-queue-async': 'true' } : {});
  };
  for (let i = 0; i < 4; i++) {
    await submit();
    await world.runFor(100);
  }
  answers = [];
  outbound.handler = () => new Promise(() => {});
  await submit();
  await world.runFor(100);
  const text = await metrics.text();
  for (const line of [
    'deliveries_total{queue="mail",outcome="succeeded"} 1',
    'deliveries_total{queue="mail",outcome="failed"} 3',
    'deliveries_total{queue="mail",outcome="async"} 1',
    'delivery_duration_seconds_count{queue="mail"} 5',
    'retries_total{queue="mail"} 1',
    'tasks_dead_total{queue="mail",reason="ATTEMPTS_EXHAUSTED"} 1',
    'tasks_dead_total{queue="mail",reason="PERMANENT"} 1',
    'deliveries_in_flight{queue="mail"} 1',
    'breaker_state{queue="mail"} 0',
  ]) {
    expect(text).toContain(`millrace_queue_${line}\n`);
  }
  expect(text).toMatch(/millrace_queue_claim_batch_size_count [1-9]/);
});

test('a queue that is gone leaves no gauges behind', async () => {
  const { world, putQueue, store, submit, metrics, delivery } = await newScene();
  await putQueue({}, 'gone');
  await submit({ queue: 'gone' });
  await world.runFor(100);
  expect(await metrics.text()).toContain('deliveries_in_flight{queue="gone"} 0');
  expect(await store.deleteQueue({ queue: 'gone', now: 0, by: 'test' })).toBe('deleted');
  delivery.queueChanged('gone');
  await world.runFor(100);
  expect(await metrics.text()).not.toContain('deliveries_in_flight{queue="gone"}');
});
