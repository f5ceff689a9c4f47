import { expect, test } from 'vitest';
import { answer, newScene } from './delivery.test-support.js';

test('a submitted task is delivered at once and settled', async () => {
  const { world, putQueue, submit, task, outbound } = await newScene();
  await putQueue();
  const id = await submit();
  await world.settle();
  expect(outbound.requests).toHaveLength(1);
  const done = await task(id);
  expect(done).toMatchObject({ status: 'SUCCEEDED', attempt: 1, totalAttempts: 1 });
  expect(done.attempts).toEqual([
    expect.objectContaining({
      attempt: 1,
      outcome: 'SUCCEEDED',
      httpStatus: 200,
      errorType: null,
      url: 'https://handlers.example.org/run',
      remoteIp: '203.0.113.7',
      nodeId: 'node-1',
    }),
  ]);
});

test('a failed attempt is retried after its backoff, and the last one is dead-lettered', async () => {
  const { world, putQueue, submit, task, outbound } = await newScene();
  await putQueue({ retry: { max_attempts: 3, initial_backoff_ms: 1_000 } });
  outbound.handler = () => answer(500, {}, 'boom');
  const id = await submit();
  await world.settle();
  expect(await task(id)).toMatchObject({ status: 'PENDING', attempt: 1 });
  await world.runFor(1_001);
  expect(await task(id)).toMatchObject({ status: 'PENDING', attempt: 2 });
  await world.runFor(2_001);
  const dead = await task(id);
  expect(dead).toMatchObject({
    status: 'DEAD',
    deadReason: 'ATTEMPTS_EXHAUSTED',
    attempt: 3,
    lastError: { errorType: 'HTTP_5XX', httpStatus: 500 },
  });
  expect(dead.attempts.map((each) => each.outcome)).toEqual(['FAILED', 'FAILED', 'FAILED']);
  expect(dead.attempts.at(-1)).toMatchObject({ nextAttemptAt: null, responseSnippet: 'boom' });
});

test('the retry is not made a moment before it is due', async () => {
  const { world, putQueue, submit, task, outbound } = await newScene();
  await putQueue();
  outbound.handler = () => answer(503, { 'retry-after': '40' });
  const id = await submit();
  await world.settle();
  const { dueAt, attempts } = await task(id);
  expect(dueAt).toBe(world.clock.now() + 40_000);
  expect(attempts[0]).toMatchObject({ retryAfterMs: 40_000, nextAttemptAt: dueAt });
  await world.runFor(39_999);
  expect(outbound.requests).toHaveLength(1);
  await world.runFor(1);
  expect(outbound.requests).toHaveLength(2);
});

test('an answer that forbids a retry ends the task at once', async () => {
  const { world, putQueue, submit, task, outbound } = await newScene();
  await putQueue();
  outbound.handler = () =>
    answer(500, { 'x-queue-retry': 'never', 'x-queue-error-type': 'BAD_ADDRESS' });
  const id = await submit();
  await world.settle();
  expect(await task(id)).toMatchObject({
    status: 'DEAD',
    deadReason: 'PERMANENT',
    attempt: 1,
    lastError: { errorType: 'BAD_ADDRESS', httpStatus: 500 },
  });
});

test('a hanging handler is cut off by the time-out, within the lease', async () => {
  const { world, putQueue, submit, task, outbound } = await newScene();
  await putQueue({ callback: { timeout_ms: 2_000 }, lease: { grace_ms: 100 } });
  outbound.handler = () => new Promise(() => {});
  const id = await submit();
  await world.runFor(1_999);
  expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT' });
  await world.runFor(1);
  const { status, lastError, attempts } = await task(id);
  expect({ status, lastError }).toMatchObject({
    status: 'PENDING',
    lastError: { errorType: 'TIMEOUT', httpStatus: null },
  });
  expect(attempts[0]).toMatchObject({ outcome: 'FAILED', durationMs: 2_000 });
});

test('the policy is that of the moment of the claim: a change applies to tasks that wait', async () => {
  const { world, putQueue, submit, task, outbound, delivery } = await newScene();
  await putQueue({ retry: { max_attempts: 5, initial_backoff_ms: 10_000 } });
  outbound.handler = () => answer(500);
  const id = await submit();
  await world.settle();
  await putQueue({
    retry: { max_attempts: 2 },
    callback: { url: 'https://handlers.example.org/new' },
  });
  delivery.queueChanged('mail');
  await world.runFor(10_000);
  expect(await task(id)).toMatchObject({ status: 'DEAD', attempt: 2 });
  expect(outbound.requests.at(-1)?.url).toBe('https://handlers.example.org/new');
});

test('a request that cannot be written fails the attempt with its error', async () => {
  const { world, putQueue, submit, task, outbound } = await newScene();
  await putQueue();
  outbound.handler = () => {
    throw new TypeError('Invalid character in header content ["X-Api-Key"]');
  };
  const id = await submit();
  await world.settle();
  const { status, attempts } = await task(id);
  expect(status).toBe('PENDING');
  expect(attempts[0]).toMatchObject({
    outcome: 'FAILED',
    errorType: 'INTERNAL',
    message: 'Invalid character in header content ["X-Api-Key"]',
    url: null,
    traceId: null,
  });
});

test('an answer that cannot be evaluated fails the attempt as one that was sent', async () => {
  const { world, putQueue, submit, task, outbound } = await newScene();
  await putQueue();
  outbound.handler = () => ({ ...answer(500), headers: undefined as never });
  const id = await submit();
  await world.settle();
  const { status, attempt, attempts } = await task(id);
  expect([status, attempt]).toEqual(['PENDING', 1]);
  expect(attempts[0]).toMatchObject({
    outcome: 'FAILED',
    errorType: 'INTERNAL',
    message: expect.stringContaining('undefined'),
    httpStatus: 500,
    remoteIp: '203.0.113.7',
    url: 'https://handlers.example.org/run',
    traceId: expect.any(String),
  });
});

test('a delayed task starts at its time, without anyone asking in between', async () => {
  const { world, putQueue, submit, outbound, store } = await newScene();
  await putQueue();
  let claims = 0;
  const { claimDue } = store;
  store.claimDue = (request) => {
    claims++;
    return claimDue.call(store, request);
  };
  await submit({ dueAt: world.clock.now() + 1_500 });
  await world.runFor(1_499);
  expect(outbound.requests).toHaveLength(0);
  expect(claims).toBe(1);
  await world.runFor(1);
  expect(outbound.requests).toHaveLength(1);
});

test('what was waiting before the start is delivered after it', async () => {
  const before = await newScene();
  await before.putQueue();
  await before.world.complete(before.delivery.stop({ timeoutMs: 0 }));
  await before.submit();
  await before.world.runFor(10_000);
  expect(before.outbound.requests).toHaveLength(0);
  const after = await newScene({}, () => before.store);
  await after.world.settle();
  expect(after.outbound.requests).toHaveLength(1);
});
