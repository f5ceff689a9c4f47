import { expect, test } from 'vitest';
import { newScene } from './delivery.test-support.js';

const seconds = 20;

test.each([0.5, 1, 3, 7])('%d a second are as many over a while', async (perSecond) => {
  const scene = await newScene();
  // Starts are counted in steps of 20 ms: begin between two of them.
  await scene.world.runFor(7);
  await scene.putQueue({ limits: { dispatch_per_second: perSecond } });
  for (let i = 0; i < perSecond * seconds * 2; i++) await scene.submit();
  await scene.world.runFor(seconds * 1_000);
  const started = scene.outbound.requests.length;
  expect(started).toBeGreaterThanOrEqual(Math.floor(perSecond * seconds * 0.97));
  expect(started).toBeLessThanOrEqual(Math.ceil(perSecond * seconds) + Math.ceil(perSecond));
});
