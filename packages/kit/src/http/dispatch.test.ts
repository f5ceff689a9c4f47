import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inject } from '../../test/http/inject.js';
import { sampleApp, startSample, token } from '../../test/http/sample-server.js';
import { Refusal } from '../base/errors.js';

let server: Awaited<ReturnType<typeof startSample>>;
beforeAll(async () => {
  server = await startSample({ onUndocumentedResponse: (text) => differences.push(text) });
});
afterAll(() => server.close());
const differences: string[] = [];

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

async function sendRequest(path: string, { method = 'GET', headers = token, body }: Sent = {}) {
  const init = { method, headers, ...(body !== undefined && { body }) };
  const response = await fetch(server.url + path, init);
  const text = await response.text();
  const json = text === '' ? undefined : (JSON.parse(text) as Record<string, unknown>);
  return { status: response.status, headers: response.headers, json };
}

const asJson = { ...token, 'content-type': 'application/json' };
const submit = (body: unknown, queue = 'mail') =>
  sendRequest(`/v1/queues/${queue}/tasks`, {
    method: 'POST',
    headers: asJson,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

describe('routes', () => {
  test('verbs never mix up with one another or with the plain path', async () => {
    const pause = await sendRequest('/v1/admin/queues/mail:pause', { method: 'POST' });
    const resume = await sendRequest('/v1/admin/queues/mail:resume', { method: 'POST' });
    expect(pause.headers.get('x-op')).toBe('pause mail');
    expect(resume.headers.get('x-op')).toBe('resume mail');
    expect((await sendRequest('/v1/admin/queues/mail')).json).toMatchObject({ op: 'getQueue' });
    expect((await sendRequest('/v1/admin/queues/mail:pause')).status).toBe(405);
    expect((await sendRequest('/v1/admin/queues/mail', { method: 'POST' })).status).toBe(405);
    expect((await sendRequest('/v1/admin/queues/mail:destroy', { method: 'POST' })).status).toBe(
      404,
    );
  });

  test('an encoded colon belongs to the name, which then is no queue', async () => {
    const encoded = await sendRequest('/v1/admin/queues/mail%3Apause', { method: 'DELETE' });
    expect(encoded.json).toMatchObject({ status: 404, code: 'QUEUE_NOT_FOUND' });
    const posted = await sendRequest('/v1/admin/queues/mail%3Apause', { method: 'POST' });
    expect(posted.json).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED' });
  });

  test('405 lists the allowed methods', async () => {
    const wrong = await sendRequest('/v1/admin/queues/mail', { method: 'PATCH' });
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get('allow')).toBe('DELETE, GET, HEAD');
    expect(wrong.json!['detail']).toBe('/v1/admin/queues/mail takes DELETE, GET, HEAD, not PATCH.');
    const options = await sendRequest('/v1/admin/queues/mail', { method: 'OPTIONS' });
    expect([options.status, options.headers.get('allow')]).toEqual([405, 'DELETE, GET, HEAD']);
    expect((await sendRequest('/healthz', { method: 'PROPFIND' })).status).toBe(405);
  });

  test('404 points out a trailing slash', async () => {
    const slash = await sendRequest('/v1/admin/queues/mail/');
    expect([slash.status, slash.json!['detail']]).toEqual([
      404,
      'There is no route /v1/admin/queues/mail/. ' +
        'Remove the trailing slash: /v1/admin/queues/mail.',
    ]);
    const nothing = await sendRequest('/v1/nothing/');
    expect(nothing.json!['detail']).toBe('There is no route /v1/nothing/.');
  });

  test('HEAD answers as GET without a body', async () => {
    const get = await fetch(`${server.url}/v1/admin/queues/mail`, { headers: token });
    const head = await fetch(`${server.url}/v1/admin/queues/mail`, {
      method: 'HEAD',
      headers: token,
    });
    expect(head.status).toBe(200);
    expect(head.headers.get('etag')).toBe('"3"');
    expect(head.headers.get('content-length')).toBe(String((await get.text()).length));
    expect(await head.text()).toBe('');
  });
});

describe('the order of checks', () => {
  const stranger = { authorization: 'Bearer nobody' };
  const poor = { authorization: 'Bearer poor' };
  const big = JSON.stringify({ handler_ref: 'x'.repeat(3000) });

  test('401 comes before 404 and 405, and only below the protected prefix', async () => {
    for (const path of ['/v1', '/v1/nothing', '/v1/admin/queues/mail:nothing']) {
      const refused = await sendRequest(path, { headers: stranger });
      expect(refused.json).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
      expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
    expect((await sendRequest('/v1/tasks/1', { method: 'PUT', headers: stranger })).status).toBe(
      401,
    );
    expect((await sendRequest('/nothing', { headers: {} })).json).toMatchObject({
      code: 'NOT_FOUND',
    });
    expect((await sendRequest('/v1x', { headers: {} })).status).toBe(404);
  });

  test('public operations need no token, also on 405', async () => {
    expect((await sendRequest('/healthz', { headers: {} })).json).toEqual({ who: 'anonymous' });
    expect((await sendRequest('/healthz', { headers: stranger })).status).toBe(200);
    expect((await sendRequest('/healthz', { method: 'POST', headers: {} })).status).toBe(405);
  });

  test('404 and 405 come before 403', async () => {
    expect((await sendRequest('/v1/nothing', { headers: poor })).status).toBe(404);
    expect((await sendRequest('/v1/tasks/1', { method: 'PUT', headers: poor })).status).toBe(405);
    expect((await sendRequest('/v1/tasks/1', { headers: poor })).status).toBe(403);
  });

  test('403 comes before 413, 413 before 415, 415 before bad JSON', async () => {
    const post = (headers: Record<string, string>, body: string) =>
      sendRequest('/v1/queues/mail/tasks', { method: 'POST', headers, body });
    expect((await post(poor, big)).status).toBe(403);
    expect((await post({ ...token, 'content-type': 'text/plain' }, big)).status).toBe(413);
    expect((await post({ ...token, 'content-type': 'text/plain' }, '{')).status).toBe(415);
    expect((await post(asJson, '{')).json).toMatchObject({ status: 422, code: 'INVALID_TASK' });
  });

  test('bad JSON comes before the path, the path before the contents of the body', async () => {
    expect((await submit('{', 'NOT A NAME')).json).toMatchObject({ code: 'INVALID_TASK' });
    expect((await submit({}, 'NOT A NAME')).json).toMatchObject({ code: 'QUEUE_NOT_FOUND' });
    expect((await submit({}, 'missing')).json).toMatchObject({ code: 'INVALID_TASK' });
  });

  test('the query is checked before the path parameter', async () => {
    const both = await sendRequest('/v1/queues/NOT%20A%20NAME/dlq?limit=x');
    expect(both.json).toMatchObject({ code: 'INVALID_QUERY' });
  });
});

describe('the call', () => {
  test('carries parameters, headers and body by their documented names', async () => {
    const headers = { ...asJson, 'x-lease-token': 'l1' };
    const body = '{"note":"done"}';
    const done = await sendRequest('/v1/tasks/7:complete', { method: 'POST', headers, body });
    expect(done.json).toEqual({
      op: 'completeTask',
      params: { id: '7' },
      headers: { 'X-Lease-Token': 'l1' },
      body: { note: 'done' },
    });
  });

  test('leaves out an optional body', async () => {
    const headers = { ...token, 'x-lease-token': 'l1' };
    const done = await sendRequest('/v1/tasks/7:complete', { method: 'POST', headers });
    expect(done.json).not.toHaveProperty('body');
    const missing = await sendRequest('/v1/tasks/7:complete', { method: 'POST' });
    expect(missing.json).toMatchObject({
      code: 'INVALID_TASK',
      detail: 'The header "X-Lease-Token" is required.',
    });
  });

  test('hands a raw body over as bytes, whatever its type', async () => {
    const post = (headers: Record<string, string>, body: string) =>
      sendRequest('/v1/callback', { method: 'POST', headers, body });
    expect((await post({ ...token, 'content-type': 'what/ever' }, '{')).json).toEqual({
      bytes: '7b',
    });
    expect((await post(token, '')).json).toEqual({ bytes: null });
    expect((await post(token, 'x'.repeat(65))).status).toBe(413);
  });

  test('leaves the check of a body to handlers that check it themselves', async () => {
    const request = {
      method: 'POST',
      url: '/v1/queues/mail/tasks:batch',
      headers: asJson,
      payload: '[{"handler_ref":5},{"unknown":1}]',
    } as const;
    expect((await inject(sampleApp(), request)).statusCode).toBe(422);
    const app = sampleApp({ handlersCheckBodies: true });
    expect((await inject(app, request)).statusCode).toBe(207);
    expect((await inject(app, { ...request, payload: '[{' })).statusCode).toBe(422);
  });

  test('ignores the body of an operation that takes none', async () => {
    const paused = await sendRequest('/v1/admin/queues/mail:pause', {
      method: 'POST',
      headers: { ...token, 'content-type': 'text/plain' },
      body: 'x'.repeat(10_000),
    });
    expect(paused.status).toBe(204);
  });
});

describe('what a handler throws', () => {
  test('a refusal is sent with its code and Retry-After', async () => {
    const busy = await submit({ handler_ref: 'busy' });
    expect(busy.headers.get('content-type')).toBe('application/problem+json');
    expect(busy.headers.get('retry-after')).toBe('2');
    expect(busy.json).toEqual({
      type: 'urn:millrace:problem:busy',
      title: 'Busy',
      status: 503,
      detail: 'Try later.',
      instance: `urn:millrace:request:${busy.headers.get('x-request-id')}`,
      code: 'BUSY',
    });
  });

  test('a bug is logged with its stack and sent without details', async () => {
    const bug = await submit({ handler_ref: 'bug' });
    expect(bug.json).toMatchObject({ status: 500, code: 'INTERNAL', detail: 'Internal error' });
    expect(JSON.stringify(bug.json)).not.toContain('secret');
    const line = server.app.lines.find(({ level }) => level === 'error')!;
    expect(line.fields['request_id']).toBe(bug.headers.get('x-request-id'));
    expect(String((line.fields['err'] as Error).stack)).toContain('secret internals');
  });

  test('a refusal with an unknown code counts as a bug', async () => {
    const other = await startSample({
      authenticate: () => {
        throw new Refusal('NO_SUCH_CODE', 'oops');
      },
    });
    const response = await fetch(`${other.url}/v1/tasks/1`);
    expect(response.status).toBe(500);
    expect(((await response.json()) as { code: string }).code).toBe('INTERNAL');
    await other.close();
  });
});

test('callers may be looked up asynchronously', async () => {
  const other = await startSample({
    authenticate: async ({ headers }) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (headers.authorization !== 'Bearer good') throw new Refusal('UNAUTHENTICATED', 'No.');
      return { name: 'eve', grants: ['*'] };
    },
    authorize: async (_principal, operation, params) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (params['queue'] === operation.minRole) throw new Refusal('FORBIDDEN', 'No.');
    },
  });
  const get = (path: string, headers = token) => fetch(other.url + path, { headers });
  expect(await (await get('/v1/admin/queues/mail')).json()).toMatchObject({ principal: 'eve' });
  expect((await get('/v1/admin/queues/admin')).status).toBe(403);
  expect((await get('/v1/admin/queues/mail', {} as never)).status).toBe(401);
  await other.close();
});

test('admit runs before anything else, on public paths too', async () => {
  const other = await startSample({
    admit: ({ headers }) => {
      if (headers.origin !== undefined) throw new Refusal('FORBIDDEN', 'Foreign origin.');
    },
  });
  const headers = { origin: 'https://elsewhere.example' };
  expect((await fetch(`${other.url}/healthz`, { headers })).status).toBe(403);
  expect((await fetch(`${other.url}/v1/nothing`, { headers })).status).toBe(403);
  expect((await fetch(`${other.url}/healthz`)).status).toBe(200);
  await other.close();
});

test('every response above is documented', () => {
  // Batches are not checked on purpose, and 404 for a bad name is documented.
  expect(differences).toEqual([]);
});
