import { createServer, type IncomingMessage } from 'node:http';
import { systemClock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { expect, onTestFinished, test } from 'vitest';
import { serverDependencies } from '../src/server/serve.js';
import { startServer } from '../src/server/server.js';
import { httpClient } from './support/http-client.js';
import { newDirectory, testSettings, tokens } from './support/server.js';

interface Answer {
  type?: string;
  body?: unknown;
}

/** A server whose queue calls a handler back. */
async function startPush(handle: (request: IncomingMessage) => Answer | Promise<Answer>) {
  const target = createServer((request, response) => {
    request.resume();
    void Promise.resolve(handle(request)).then(({ type = 'application/json', body }) => {
      response.setHeader('content-type', type);
      response.end(body === undefined ? '' : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  const { port } = target.address() as { port: number };
  const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
  const running = await startServer(testSettings(newDirectory()), world, serverDependencies);
  const send = httpClient(running.listeners[0]!.url);
  onTestFinished(async () => {
    send.close();
    await running.stop();
    target.close();
  });
  const call = (method: string, path: string, body?: unknown, headers = {}) =>
    send({ method, path, body, headers, token: tokens.root });
  const callback = { url: `http://127.0.0.1:${port}/`, keep_result: true };
  const made = await call('PUT', '/v1/admin/queues/mail/config', { callback });
  expect(made.status, made.text).toBe(200);
  return {
    call,
    submit: async (body: object) => {
      const answer = await call('POST', '/v1/queues/mail/tasks', { handler_ref: 'a', ...body });
      expect(answer.status, answer.text).toBe(202);
      return String(answer.body['id']);
    },
    ended: async (id: string) => (await call('GET', `/v1/tasks/${id}?wait_ms=20000`)).body,
  };
}

test('callback: carries dependencies in a header, without results that are too large', async () => {
  const seen = new Map<string, unknown>();
  const { submit, ended } = await startPush(({ headers }) => {
    const dependencies = headers['x-queue-dependencies'] as string | undefined;
    seen.set(String(headers['x-queue-handler-ref']), dependencies && JSON.parse(dependencies));
    return { body: headers['x-queue-handler-ref'] === 'large' ? 'x'.repeat(9_000) : { ü: 1 } };
  });
  const small = await submit({ handler_ref: 'small' });
  const large = await submit({ handler_ref: 'large' });
  await ended(await submit({ handler_ref: 'one', depends_on: [small] }));
  await ended(await submit({ handler_ref: 'two', depends_on: [large, small] }));
  expect(seen.get('small')).toBeUndefined();
  const result = { ü: 1 };
  expect(seen.get('one')).toEqual([
    { id: small, handler_ref: 'small', status: 'SUCCEEDED', result },
  ]);
  expect(seen.get('two')).toEqual([
    { id: large, handler_ref: 'large', status: 'SUCCEEDED', result_omitted: true },
    { id: small, handler_ref: 'small', status: 'SUCCEEDED', result_omitted: true },
  ]);
});

test('callback: an answer suspends the task until a signal comes', async () => {
  let calls = 0;
  const suspend = 'application/vnd.millrace.suspend+json';
  const { submit, ended, call } = await startPush(async ({ headers }) => {
    calls++;
    const id = String(headers['x-queue-task-id']);
    const token = { 'x-queue-lease-token': headers['x-queue-lease-token'] };
    const run = (await call('GET', `/v1/tasks/${id}/run`, undefined, token)).body;
    const [signal] = run['signals'] as { payload: unknown }[];
    if (signal) return { body: { got: signal.payload, by: run['woken_by'] } };
    return { type: suspend, body: { signals: ['go'] } };
  });
  const id = await submit({});
  await expect
    .poll(async () => (await call('GET', `/v1/tasks/${id}`)).body['waiting_for'])
    .toBe('signal');
  await call('POST', `/v1/tasks/${id}/signals`, { name: 'go', payload: 7 });
  expect(await ended(id)).toMatchObject({
    status: 'SUCCEEDED',
    attempt: 1,
    result: { got: 7, by: { kind: 'signal', name: 'go' } },
  });
  expect(calls).toBe(2);
});

test('callback: a suspension that cannot be read is a failed attempt', async () => {
  const { submit, ended, call } = await startPush(() => ({
    type: 'application/vnd.millrace.suspend+json',
    body: { signals: 'go' },
  }));
  const retry = { max_attempts: 1 };
  const config = (await call('GET', '/v1/admin/queues/mail/config')).body;
  await call('PUT', '/v1/admin/queues/mail/config', { callback: config['callback'], retry });
  expect(await ended(await submit({}))).toMatchObject({
    status: 'DEAD',
    last_error: { error_type: 'INVALID_SUSPENSION' },
  });
});
