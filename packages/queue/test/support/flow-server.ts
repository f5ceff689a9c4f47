import { systemClock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, expect } from 'vitest';
import { serverDependencies } from '../../src/server/serve.js';
import { startServer, type RunningQueue } from '../../src/server/server.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import { httpClient, type TestRequest } from './http-client.js';
import { newDirectory, testSettings, tokens, type Who } from './server.js';

export type Body = Record<string, unknown>;
export interface Claimed extends Body {
  id: string;
  lease_token: string;
}
export type OpenStore = () => Promise<TaskStore>;

/** A whole server for the tests of one `describe`, and calls of its REST API. */
export function flowServer(openStore?: OpenStore) {
  let running: RunningQueue;
  let client: ReturnType<typeof httpClient>;
  const ends: (() => void | Promise<void>)[] = [];

  beforeAll(async () => {
    const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
    const settings = testSettings(newDirectory((end) => void ends.push(end)));
    const dependencies = openStore ? { ...serverDependencies, openStore } : serverDependencies;
    running = await startServer(settings, world, dependencies);
    client = httpClient(running.listeners[0]!.url);
    for (const queue of ['mail', 'mail.two', 'other', 'mail.slow']) {
      await configure(queue, queue === 'mail.slow' ? { retry: { max_attempts: 1 } } : {});
    }
  });
  afterAll(async () => {
    client.close();
    await running.stop();
    for (const end of ends) await end();
  });

  const send = (request: TestRequest) => client(request);
  const get = (path: string, who: Who = 'root') => send({ path, token: tokens[who] });
  const post = (path: string, body: unknown, who: Who = 'root') =>
    send({ method: 'POST', path, body, token: tokens[who] });
  const put = (path: string, body: unknown) =>
    send({ method: 'PUT', path, body, token: tokens.root });
  const configure = async (queue: string, config: Body = {}) => {
    const body = { callback: { protocol: 'pull' }, ...config };
    const answer = await put(`/v1/admin/queues/${queue}/config`, body);
    expect(answer.status, answer.text).toBe(200);
  };
  const submit = async (over: Body = {}, queue = 'mail') => {
    const answer = await post(`/v1/queues/${queue}/tasks`, { handler_ref: 'a', ...over });
    expect(answer.status, answer.text).toBe(202);
    return String(answer.body['id']);
  };
  const claim = async (handler: string, queue = 'mail', wait = 5_000): Promise<Claimed> => {
    const request = { worker: 'w', wait_ms: wait, handlers: [handler] };
    const answer = await post(`/v1/queues/${queue}/tasks:claim`, request);
    expect(answer.status, answer.text).toBe(200);
    return (answer.body['tasks'] as Claimed[])[0]!;
  };
  const complete = async ({ id, lease_token }: Claimed, body: Body = {}) => {
    const answer = await post(`/v1/tasks/${id}:complete`, { lease_token, ...body });
    expect(answer.status, answer.text).toBe(200);
    return answer.body;
  };
  const failFor = async ({ id, lease_token }: Claimed, queue = 'mail') => {
    const item = { id, lease_token, outcome: 'fail', retry: false };
    const answer = await post(`/v1/queues/${queue}/tasks:settle`, { items: [item] });
    expect(answer.status, answer.text).toBe(207);
  };
  const task = async (id: string) => (await get(`/v1/tasks/${id}`)).body;
  const url = (index = 0) => running.listeners[index]!.url;
  const refusal = (answer: { status: number; body: Body }) => {
    const [first] = (answer.body['errors'] ?? []) as { pointer: string }[];
    return [answer.status, answer.body['code'], ...(first ? [first.pointer] : [])];
  };
  return { send, get, post, put, configure, submit, claim, complete, failFor, task, url, refusal };
}
