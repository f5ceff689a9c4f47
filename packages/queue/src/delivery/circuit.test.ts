import { expect, test } from 'vitest';
import { answer, newScene } from './delivery.test-support.js';

const quickly = { initial_backoff_ms: 10, max_backoff_ms: 10, max_attempts: 1_000 };

test('circuit breaker: a failing target gets no callbacks, which uses up no attempts', async () => {
  const { world, putQueue, submit, task, outbound, metrics, delivery, store } = await newScene();
  await putQueue({ limits: { max_in_flight: 1 }, retry: quickly });
  outbound.handler = () => answer(503);
  const ids: string[] = [];
  for (let i = 0; i < 30; i++) ids.push(await submit());
  await world.runFor(20_000);
  expect(outbound.requests).toHaveLength(10);
  expect(await metrics.text()).toContain('millrace_queue_breaker_state{queue="mail"} 2');
  const attempts = await Promise.all(ids.map(async (id) => (await task(id)).totalAttempts));
  expect(attempts.reduce((sum, each) => sum + each)).toBe(10);
  const queue = (await store.getQueue('mail'))!;
  expect(await delivery.waitingFor(await task(ids[29]!), queue)).toBe('circuit_open');
});

test('then probes decide: one that fails keeps it open, three that succeed close it', async () => {
  const { world, putQueue, submit, outbound, metrics } = await newScene();
  await putQueue({ limits: { max_in_flight: 10 }, retry: quickly });
  outbound.handler = () => answer(503);
  for (let i = 0; i < 30; i++) await submit();
  await world.runFor(1_000);
  const before = outbound.requests.length;
  await world.runFor(29_500);
  expect(outbound.requests.length - before).toBe(3);
  outbound.handler = () => answer(200);
  await world.runFor(31_000);
  expect(outbound.requests.length - before).toBe(3 + 30);
  expect(await metrics.text()).toContain('millrace_queue_breaker_state{queue="mail"} 0');
  const lines = world.log.lines.map(({ fields }) => `${fields['from']} ${fields['to']}`);
  expect(lines).toEqual([
    'closed open',
    'open half_open',
    'half_open open',
    'open half_open',
    'half_open closed',
  ]);
});

test('the probes start the moment its time is over', async () => {
  const { world, putQueue, submit, outbound } = await newScene();
  await putQueue({
    limits: { max_in_flight: 1 },
    retry: quickly,
    circuit_breaker: { open_ms: 700 },
  });
  const startedAt: number[] = [];
  outbound.handler = () => {
    startedAt.push(world.timeline.elapsedMs);
    return answer(503);
  };
  for (let i = 0; i < 12; i++) await submit();
  await world.runFor(1_000);
  expect(startedAt[10]! - startedAt[9]!).toBe(700);
});

test('failures that are the task’s own fault do not open it', async () => {
  const { world, putQueue, submit, outbound } = await newScene();
  await putQueue();
  outbound.handler = () => answer(400);
  for (let i = 0; i < 30; i++) await submit();
  await world.runFor(1_000);
  expect(outbound.requests).toHaveLength(30);
});

test('circuit breaker: another callback URL resets it, any other change does not', async () => {
  const { world, putQueue, submit, outbound, delivery } = await newScene();
  const parts = { limits: { max_in_flight: 1 }, retry: quickly };
  await putQueue(parts);
  outbound.handler = ({ url }) => answer(url.endsWith('/fixed') ? 200 : 503);
  for (let i = 0; i < 20; i++) await submit();
  await world.runFor(5_000);
  expect(outbound.requests).toHaveLength(10);
  await putQueue({ ...parts, retention: { dead_ms: 5 } });
  delivery.queueChanged('mail');
  await world.runFor(1_000);
  expect(outbound.requests).toHaveLength(10);
  await putQueue({ ...parts, callback: { url: 'https://handlers.example.org/fixed' } });
  delivery.queueChanged('mail');
  await world.runFor(100);
  expect(outbound.requests).toHaveLength(30);
});

test('circuit breaker: a failing handler delays no other, and each gets its own probes', async () => {
  const { world, putQueue, submit, task, outbound, delivery, store, metrics } = await newScene();
  await putQueue({ limits: { max_in_flight: 10 }, retry: quickly });
  const handlerOf = ({ headers = {} }: { headers?: Readonly<Record<string, unknown>> }) =>
    String(headers['x-queue-handler-ref'] ?? headers['X-Queue-Handler-Ref']);
  outbound.handler = (request) => answer(handlerOf(request) === 'ok' ? 200 : 503);
  for (let i = 0; i < 40; i++) await submit({ handlerRef: i % 2 ? 'bad' : 'worse' });
  await world.runFor(2_000);
  const ids = [await submit({ handlerRef: 'ok' }), await submit({ handlerRef: 'bad' })];
  await world.runFor(100);
  expect((await task(ids[0]!)).status).toBe('SUCCEEDED');
  const queue = (await store.getQueue('mail'))!;
  expect(await delivery.waitingFor(await task(ids[1]!), queue)).toBe('circuit_open');
  const { handlers } = await delivery.breakersOf('mail');
  expect(handlers.map(({ handler, phase }) => `${handler} ${phase}`).toSorted()).toEqual([
    'bad open',
    'ok closed',
    'worse open',
  ]);
  expect(await metrics.text()).toMatch(/handler_breaker_state\{.*handler_ref="bad".*\} 2/);
  const before = outbound.requests.length;
  await world.runFor(31_000);
  const probed = outbound.requests.slice(before).map(handlerOf).toSorted();
  expect(probed).toEqual(['bad', 'bad', 'bad', 'worse', 'worse', 'worse']);
});
