import { expect, test } from 'vitest';
import { answer, newScene, sampleQueue } from './delivery.test-support.js';

test('a probe is sent as a task would be, and leaves no trace in the store', async () => {
  const { world, delivery, outbound, store, putQueue } = await newScene();
  const queue = await putQueue();
  await store.setPaused({ queue: 'mail', paused: true, now: 0, by: 'test' });
  outbound.handler = () => answer(204);
  expect(await world.complete(delivery.probe(queue))).toEqual({
    delivered: true,
    http_status: 204,
    duration_ms: 0,
    error_type: null,
    message: null,
  });
  const [request] = outbound.requests;
  expect(request).toMatchObject({ method: 'POST', body: new Uint8Array(0), timeoutMs: 30_000 });
  expect(request!.headers).toMatchObject({
    'X-Queue-Probe': 'true',
    'X-Queue-Handler-Ref': 'queue.probe',
    'X-Queue-Task-Id': expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/),
    'X-Queue-Attempt': '1',
  });
  expect(request!.headers).not.toHaveProperty('X-Queue-Lease-Token');
  expect(await store.counts('mail')).toMatchObject({ pending: 0, inFlight: 0, dead: 0 });
});

test('what went wrong is an answer too', async () => {
  const { world, delivery, outbound } = await newScene();
  outbound.handler = () => answer(503);
  const queue = sampleQueue();
  expect(await world.complete(delivery.probe(queue))).toMatchObject({
    delivered: false,
    http_status: 503,
    error_type: 'UNAVAILABLE',
  });
  outbound.handler = () => ({
    ok: false,
    errorType: 'TARGET_BLOCKED',
    message: '127.0.0.1 is a loopback address',
    durationMs: 1,
  });
  expect(await world.complete(delivery.probe(queue))).toMatchObject({
    delivered: false,
    http_status: null,
    error_type: 'TARGET_BLOCKED',
    message: '127.0.0.1 is a loopback address',
  });
});

test('a missing secret is reported without sending anything', async () => {
  const { delivery, outbound } = await newScene();
  const queue = sampleQueue({ callback: { auth: { type: 'bearer', secret_ref: 'token' } } });
  expect(await delivery.probe(queue)).toMatchObject({
    delivered: false,
    error_type: 'INTERNAL',
    message: expect.stringContaining('the secret token'),
  });
  expect(outbound.requests).toHaveLength(0);
});
