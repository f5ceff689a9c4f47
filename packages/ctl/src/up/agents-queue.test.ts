import type { QueueSchema } from '@millrace/contract/queue';
import { Refusal } from '@millrace/kit/errors';
import { expect, test } from 'vitest';
import type { Call, QueueApi } from '../queue/api.js';
import { setUpAgentsQueue } from './agents-queue.js';

type Config = QueueSchema<'QueueConfig'>;

/** A queue server that has this config of the queue, or none, and keeps what is put. */
function serverWith(before: Partial<Config> | undefined) {
  const puts: Call[] = [];
  const api = {
    url: 'http://queue',
    call: (operation: string, call: Call) => {
      if (operation === 'putQueueConfig') puts.push(call);
      else if (before === undefined) throw new Refusal('QUEUE_NOT_FOUND', 'no such queue');
      return Promise.resolve({ body: before, headers: {} });
    },
  };
  return { api: api as unknown as QueueApi, puts };
}

const url = 'http://127.0.0.1:8765/api/v1/queue/callback';
const callback = { url, needsToken: false };

/** What a server answers after it was put. */
function stored(body: object): Config {
  const times = { created_at: '', updated_at: '' };
  return { name: 'agents', paused: false, version: 4, ...times, ...body } as Config;
}

async function firstConfig(): Promise<Config> {
  const { api, puts } = serverWith(undefined);
  expect(await setUpAgentsQueue(api, callback)).toBe('created');
  return stored(puts[0]!.body!);
}

test('a queue that is not there is made: signed, few at once, few attempts', async () => {
  expect(await firstConfig()).toMatchObject({
    callback: { url, auth: { type: 'none' }, signing: { secret_refs: ['agents-callback'] } },
    retry: { max_attempts: 3 },
    limits: { max_in_flight: 4 },
    ordering: { mode: 'group' },
  });
});

test('one that is right is left alone', async () => {
  const { api, puts } = serverWith(await firstConfig());
  expect(await setUpAgentsQueue(api, callback)).toBe('unchanged');
  expect(puts).toEqual([]);
});

test('where the daemon is, and that it asks for a token, is updated, and the rest stays', async () => {
  const before = await firstConfig();
  const { api, puts } = serverWith({ ...before, retry: { ...before.retry, max_attempts: 9 } });
  const moved = url.replace('8765', '4000');
  expect(await setUpAgentsQueue(api, { url: moved, needsToken: true })).toBe('updated');
  expect(puts[0]).toMatchObject({
    headers: { 'if-match': '"4"' },
    body: {
      callback: { url: moved, auth: { type: 'bearer', secret_ref: 'daemon-token' } },
      retry: { max_attempts: 9 },
      limits: { max_in_flight: 4 },
    },
  });
  expect(puts[0]!.body).not.toHaveProperty('version');
});

test.for([
  ['another address', { url: 'https://handlers.example.org/agents' }],
  ['no signature', { signing: null }],
] as const)('a queue of somebody else is left alone: %s', async ([, other]) => {
  const before = await firstConfig();
  const foreign = { ...before, callback: { ...before.callback, ...other } } as Config;
  const { api, puts } = serverWith(foreign);
  expect(await setUpAgentsQueue(api, callback)).toBe('foreign');
  expect(puts).toEqual([]);
});
