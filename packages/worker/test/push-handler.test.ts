import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  createHandler,
  defineTasks,
  PermanentError,
  RetryLater,
  toNodeHandler,
  type HandlerCall,
} from '@millrace/worker';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';

const secret = `whsec_${btoa('a secret of thirty-two bytes, so')}`;
const otherSecret = `whsec_${btoa('another secret of about 32 bytes')}`;
const tasks = defineTasks({ 'mail.send': z.object({ to: z.string() }), 'mail.drop': z.unknown() });
const taskId = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';

/** A callback as the queue sends it. */
function callback(payload: unknown, over: { ref?: string; key?: string; at?: Date } = {}): Request {
  const { ref = 'mail.send', key = secret, at = new Date() } = over;
  const body = JSON.stringify(payload);
  return new Request('https://handlers.example.org/queue', {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      'x-queue-name': 'mail',
      'x-queue-task-id': taskId,
      'x-queue-handler-ref': ref,
      'x-queue-attempt': '2',
      'x-queue-max-attempts': '15',
      'x-queue-redrive-count': '0',
      'x-queue-deadline': new Date(Date.now() + 30_000).toISOString(),
      'webhook-id': taskId,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(key).sign(taskId, at, body),
    },
  });
}

const handlerOf = (run: (to: string) => unknown, keys: string | string[] = secret) =>
  createHandler({ secret: keys }, tasks, {
    'mail.send': ({ payload }) => run(payload.to),
    'mail.drop': () => undefined,
  });

test('handler: runs a signed callback and answers with the result', async () => {
  const seen: unknown[] = [];
  const handler = createHandler({ secret }, tasks, {
    'mail.send': ({ payload, task }) => {
      seen.push(payload, task.id, task.attempt, task.queue);
      return { sent: true };
    },
    'mail.drop': () => undefined,
  });
  const answer = await handler(callback({ to: 'ada' }));
  expect([answer.status, await answer.json()]).toEqual([200, { sent: true }]);
  expect(seen).toEqual([{ to: 'ada' }, taskId, 2, 'mail']);
  expect((await handler(callback(1, { ref: 'mail.drop' }))).status).toBe(204);
});

test('progress: a callback reports it with its lease token, and a lost lease aborts it', async () => {
  const sent: unknown[] = [];
  let status = 200;
  const fetch = (url: string, init: { headers: Record<string, string>; body?: unknown }) => {
    sent.push([url, init.headers['x-queue-lease-token'], JSON.parse(String(init.body))]);
    const lost = { code: 'LEASE_LOST', title: 'Lease lost', status, detail: 'cancelled' };
    return Promise.resolve(Response.json(status === 200 ? {} : lost, { status }));
  };
  let wasAborted = false;
  const handlers = {
    'mail.send': async ({ progress, signal }: HandlerCall<{ to: string }>) => {
      try {
        await progress({ percent: 40, message: '4 of 10' });
      } finally {
        wasAborted = signal.aborted;
      }
    },
    'mail.drop': () => undefined,
  };
  const url = 'http://127.0.0.1:8081';
  const handler = createHandler(
    { secret, url, token: 't', fetch: fetch as never },
    tasks,
    handlers,
  );
  const leased = () => {
    const request = callback({ to: 'ada' });
    request.headers.set('x-queue-lease-token', 'lease');
    return request;
  };
  expect((await handler(leased())).status).toBe(204);
  const progress = { percent: 40, message: '4 of 10' };
  const place = `${url}/v1/tasks/${taskId}:extend`;
  expect(sent).toEqual([[place, 'lease', { extend_ms: 1_000, progress }]]);
  expect(wasAborted).toBe(false);
  status = 409;
  expect((await handler(leased())).status).toBe(500);
  expect(wasAborted).toBe(true);
  const silent = createHandler({ secret }, tasks, handlers);
  expect((await silent(leased())).status).toBe(204);
  expect(sent).toHaveLength(2);
});

test.each([
  ['another secret', callback({ to: 'ada' }, { key: otherSecret })],
  ['an old timestamp', callback({ to: 'ada' }, { at: new Date(Date.now() - 600_000) })],
  ['no signature', new Request('https://a.example', { method: 'POST', body: '{}' })],
])('handler: refuses a callback with %s', async (_, request) => {
  let runs = 0;
  expect((await handlerOf(() => runs++)(request)).status).toBe(401);
  expect(runs).toBe(0);
});

test('handler: accepts both secrets during a rotation', async () => {
  const handler = handlerOf(() => undefined, [otherSecret, secret]);
  expect((await handler(callback({ to: 'a' }))).status).toBe(204);
  expect((await handler(callback({ to: 'a' }, { key: otherSecret }))).status).toBe(204);
});

test('handler: a changed body is refused', async () => {
  const signed = callback({ to: 'ada' });
  const forged = new Request(signed.url, {
    method: 'POST',
    headers: signed.headers,
    body: JSON.stringify({ to: 'eve' }),
  });
  expect((await handlerOf(() => undefined)(forged)).status).toBe(401);
});

test('handler: an error says whether the queue retries', async () => {
  const answerTo = async (error: unknown) => {
    const handler = handlerOf(() => {
      throw error;
    });
    const request = callback({ to: 'ada' });
    const answer = await handler(request);
    const shown = ['x-queue-error-type', 'x-queue-retry', 'retry-after'] as const;
    const headers = shown.map((name) => answer.headers.get(name));
    const message = decodeURIComponent(answer.headers.get('x-queue-error-message') ?? '');
    return [answer.status, ...headers, (await answer.text()).split('\n')[0], message];
  };
  expect(await answerTo(new TypeError('broken'))).toEqual([
    500,
    'TypeError',
    null,
    null,
    'TypeError: broken',
    'broken',
  ]);
  const later = await answerTo(new RetryLater({ afterMs: 1_500 }));
  expect(later.slice(0, 4)).toEqual([503, 'RetryLater', null, '2']);
  const never = await answerTo(new PermanentError('no mailbox “ada”\n\ud800'));
  expect(never.slice(0, 4)).toEqual([422, 'PermanentError', 'never', null]);
  expect(never.at(-1)).toBe('no mailbox “ada”\n\u{fffd}');
  expect((await answerTo(new Error('ü'.repeat(5_000)))).at(-1)).toBe('ü'.repeat(512));
});

test('handler: a payload that fails its schema is permanent and names the field', async () => {
  const answer = await handlerOf(() => undefined)(callback({ to: 5 }));
  expect([answer.status, answer.headers.get('x-queue-retry')]).toEqual([422, 'never']);
  expect(await answer.text()).toContain('to: ');
});

test('handler: an unknown task, another method and a probe run nothing', async () => {
  const handler = handlerOf(() => {
    throw new Error('ran');
  });
  expect((await handler(callback({}, { ref: 'mail.other' }))).status).toBe(404);
  expect((await handler(new Request('https://a.example'))).status).toBe(405);
  const probe = callback({ to: 'ada' });
  probe.headers.set('x-queue-probe', 'true');
  expect((await handler(probe)).status).toBe(204);
});

test('toNodeHandler: serves a fetch handler on node:http', async () => {
  const server = createServer(toNodeHandler(handlerOf((to) => ({ to }))));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const { headers, ...signed } = callback({ to: 'ada' });
  const body = await callback({ to: 'ada' }).text();
  const answer = await fetch(`http://127.0.0.1:${port}/queue`, {
    ...signed,
    method: 'POST',
    headers: Object.fromEntries(headers),
    body,
  });
  expect([answer.status, await answer.json()]).toEqual([200, { to: 'ada' }]);
  const tooLarge = await fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    body: new Uint8Array(8 * 2 ** 20 + 1),
  }).catch(() => ({ status: 413 }));
  expect(tooLarge.status).toBe(413);
});

test('step: a callback reads its run, records steps and suspends by its answer', async () => {
  const steps: { name: string; result: unknown }[] = [];
  const calls: string[] = [];
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    const { pathname } = new URL(input instanceof Request ? input.url : String(input));
    calls.push(pathname);
    if (pathname.endsWith('/run')) return Response.json({ steps, signals: [], dependencies: [] });
    const body = JSON.parse(String(init?.body)) as { name: string; result: unknown };
    steps.push(body);
    return Response.json({ ...body, error: null, recorded: true });
  };
  const tasks = defineTasks<{ a: unknown }>();
  const options = { secret: null, url: 'http://queue.example', token: 't', fetch: fetch as never };
  const handle = createHandler(options, tasks, {
    a: async ({ step, dependencies }) => {
      const n = await step.run('one', () => dependencies.length);
      await step.signal('go');
      return n;
    },
  });
  const headers = {
    'x-queue-task-id': '01JD3Z8Q4M7X2N5V9RTBKWCH6E',
    'x-queue-name': 'mail',
    'x-queue-handler-ref': 'a',
    'x-queue-lease-token': 'l1',
    'x-queue-max-attempts': '3',
    'x-queue-dependencies': '[{"id":"x","status":"SUCCEEDED","result":1}]',
  };
  const answer = await handle(new Request('http://me/', { method: 'POST', headers, body: '' }));
  expect(answer.headers.get('content-type')).toBe('application/vnd.millrace.suspend+json');
  expect(await answer.json()).toEqual({ signals: ['go'] });
  expect(steps).toMatchObject([{ steps: [{ name: 'one', result: 1 }] }]);
  expect(calls).toHaveLength(2);
});
