import { expect, test } from 'vitest';
import { newScene } from './delivery.test-support.js';

test('a queue whose URL left the allowlist is held: nothing is sent and no attempt used', async () => {
  let isAllowed = false;
  const scene = await newScene({ isAllowed: () => isAllowed });
  const { world, putQueue, submit, task, outbound, metrics, delivery, store } = scene;
  await putQueue();
  const id = await submit();
  await world.runFor(60_000);
  expect(outbound.requests).toHaveLength(0);
  expect(await task(id)).toMatchObject({ status: 'PENDING', attempt: 0 });
  expect(await metrics.text()).toContain('millrace_queue_held{queue="mail"} 1');
  const warnings = world.log.lines.filter((line) => line.level === 'warn');
  expect(warnings).toEqual([
    expect.objectContaining({ fields: expect.objectContaining({ queue: 'mail' }) }),
  ]);
  const queue = (await store.getQueue('mail'))!;
  expect(await delivery.waitingFor(await task(id), queue)).toBe('paused');
  isAllowed = true;
  await world.runFor(2_000);
  expect(await task(id)).toMatchObject({ status: 'SUCCEEDED' });
  expect(await metrics.text()).toContain('millrace_queue_held{queue="mail"} 0');
});

test('a queue whose secret is gone is held until it is there again', async () => {
  const secrets = new Map<string, string>();
  const scene = await newScene({ findSecret: (name, queue) => secrets.get(`${queue} ${name}`) });
  const { world, putQueue, submit, outbound } = scene;
  await putQueue({ callback: { auth: { type: 'bearer', secret_ref: 'token' } } });
  await submit();
  await world.runFor(5_000);
  expect(outbound.requests).toHaveLength(0);
  const reason = 'the secret token does not exist or is not open to this queue';
  expect(world.log.lines.at(-1)).toMatchObject({ message: 'queue held', fields: { reason } });
  secrets.set('mail token', 'abc');
  await world.runFor(2_000);
  expect(outbound.requests[0]?.headers).toMatchObject({ Authorization: 'Bearer abc' });
});
