import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { expect, test } from 'vitest';
import { campaignSize } from '../../../test/support/campaign.js';
import { httpClient } from './support/http-client.js';
import { startHandler } from './support/handler.js';
import { caller, listening, newHome, run, soon } from './support/process.js';
import { tokens } from './support/server.js';

const rounds = campaignSize({ quick: 1, full: 10 });
const submitters = 8;

/** Events of one task, in order. */
interface Story {
  /** Server runs that delivered it, one entry per delivery. */
  deliveredIn: number[];
  /** The server said that it is done. */
  isDone: boolean;
}

test(`a server killed ${rounds} times under load keeps every task that it accepted`, async () => {
  const stories = new Map<string, Story>();
  const storyOf = (id: string) => {
    const story = stories.get(id) ?? { deliveredIn: [], isDone: false };
    stories.set(id, story);
    return story;
  };
  const mistakes: string[] = [];
  let life = 0;
  const handler = await startHandler(({ headers }) => {
    const id = String(headers['x-queue-task-id']);
    const story = storyOf(id);
    if (story.isDone) mistakes.push(`${id} was delivered after it was done`);
    story.deliveredIn.push(life);
    return { status: 200, afterMs: systemRandom.integer(0, 20) };
  });
  const home = newHome();
  const accepted = new Set<string>();

  for (; life < rounds; life++) {
    const server = run([`--config=${join(home, 'queue.yaml')}`]);
    const { http } = await listening(server);
    if (life === 0) await configure(http!, handler.url);
    await noteTheDone(http!, stories);
    let isUp = true;
    const work = Array.from({ length: submitters }, async () => {
      while (isUp) for (const id of await submitBatch(http!)) accepted.add(id);
    });
    // After a number of responses, not after a time: a kill without work would prove nothing.
    const enough = accepted.size + systemRandom.integer(60, 200);
    await expect.poll(() => accepted.size, soon).toBeGreaterThanOrEqual(enough);
    await systemClock.sleep(systemRandom.integer(0, 20));
    server.child.kill('SIGKILL');
    isUp = false;
    expect(await server.ended).toBe('SIGKILL');
    await Promise.all(work);
  }

  const server = run([`--config=${join(home, 'queue.yaml')}`]);
  const { http } = await listening(server);
  const client = caller(http!);
  const left = async () => {
    const { body } = await client({ path: '/v1/queues/mail/stats' });
    return Number(body['pending']) + Number(body['in_flight']);
  };
  await expect.poll(left, { ...soon, timeout: 240_000 }).toBe(0);
  for (const id of accepted) {
    const { status, body } = await client({ path: `/v1/tasks/${id}` });
    expect({ id, status, task: body['status'] }).toEqual({ id, status: 200, task: 'SUCCEEDED' });
  }
  expect(mistakes).toEqual([]);
  // A life of the server hands a task over once; only what a kill interrupted is handed over again.
  for (const [id, { deliveredIn }] of stories) {
    expect({ id, deliveredIn }).toEqual({ id, deliveredIn: [...new Set(deliveredIn)] });
  }
  expect(accepted.size).toBeGreaterThan(50 * rounds);
  server.child.kill('SIGTERM');
  expect(await server.ended).toBe(0);
}, 600_000);

async function configure(url: string, callbackUrl: string): Promise<void> {
  const { status, text } = await caller(url)({
    method: 'PUT',
    path: '/v1/admin/queues/mail/config',
    body: {
      callback: { url: callbackUrl, timeout_ms: 10_000 },
      lease: { grace_ms: 100 },
      retry: { initial_backoff_ms: 10, max_attempts: 100 },
    },
  });
  expect(status, text).toBe(200);
}

/** The ids that the server accepted; none when it is gone. */
async function submitBatch(url: string): Promise<string[]> {
  const send = httpClient(url);
  try {
    const body = Array.from({ length: systemRandom.integer(1, 20) }, () => ({
      id: systemRandom.ulid(systemClock.now()),
      handler_ref: 'a',
      payload: Buffer.alloc(300, 1).toString('base64'),
    }));
    const { status, body: results } = await send<{ status: number; envelope: { id: string } }[]>({
      method: 'POST',
      path: '/v1/queues/mail/tasks:batch',
      token: tokens.root,
      body,
    });
    if (status !== 207) return [];
    return results.filter((one) => one.status === 202).map(({ envelope }) => envelope.id);
  } catch (error) {
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  } finally {
    send.close();
  }
}

/** What the server calls done from now on must not be delivered again. */
async function noteTheDone(url: string, stories: ReadonlyMap<string, Story>): Promise<void> {
  const client = caller(url);
  for (const [id, story] of stories) {
    if (!story.isDone) story.isDone = (await client.status(id)) === 'SUCCEEDED';
  }
}
