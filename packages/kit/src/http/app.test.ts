import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inject } from '../../test/http/inject.js';
import { sampleApp, startSample, token } from '../../test/http/sample-server.js';
import { Refusal } from '../base/errors.js';
import { createMetrics } from '../base/metrics.js';
import { serveMetrics } from './app.js';
import { listen } from './listen.js';

const metrics = createMetrics('sample');
let server: Awaited<ReturnType<typeof startSample>>;
beforeAll(async () => {
  server = await startSample({ metrics });
});
afterAll(async () => {
  await server.close();
  metrics.close();
});

/** Writes raw bytes, more after each piece that comes back, and returns all that comes back before the connection ends. */
function converse(text: string, ...later: string[]): Promise<string> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let answer = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      answer += part;
      const next = later.shift();
      if (next !== undefined) socket.write(next);
    });
    socket.on('end', () => resolve(answer)).on('error', reject);
  });
}

function problemOf(answer: string) {
  const [head, body] = answer.split('\r\n\r\n') as [string, string];
  expect(head).toMatch(/content-type: application\/problem\+json/i);
  expect(head).toMatch(/x-request-id: \S+/i);
  return JSON.parse(body) as Record<string, unknown>;
}

describe('invalid requests', () => {
  test('garbage is 400', async () => {
    const answer = await converse('what is this\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(problemOf(answer)).toMatchObject({ type: 'about:blank', status: 400 });
  });

  test('headers beyond 16 KiB are 431', async () => {
    const answer = await converse(`GET / HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(problemOf(answer)).toMatchObject({ status: 431 });
  });

  test('two lengths are 400, not a guess', async () => {
    const answer = await converse(
      'POST /v1/callback HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    );
    expect(problemOf(answer)).toMatchObject({ status: 400 });
  });

  test('a bad request after a good one on the same connection is answered too', async () => {
    const answer = await converse('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 'nonsense\r\n\r\n');
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  test.each(['/v1/tasks/%', '/v1/tasks/%zz', '/v1/tasks/%FF', '/%E0%A4%A'])(
    '%s is 404, and 401 first where a token is needed',
    async (path) => {
      const get = (headers: string) =>
        converse(`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`);
      const known = problemOf(await get('Authorization: Bearer good\r\n'));
      expect(known).toMatchObject({ status: 404, code: 'NOT_FOUND' });
      const stranger = problemOf(await get(''));
      expect(stranger['status']).toBe(path.startsWith('/v1') ? 401 : 404);
    },
  );

  test('a request may name its path by a whole URL', async () => {
    const answer = await converse(
      'GET http://example.org/healthz?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    const hidden = await converse(
      'GET http://example.org/v1/tasks/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    expect(hidden).toMatch(/^HTTP\/1\.1 401 /);
  });

  test('OPTIONS * is answered', async () => {
    const answer = await converse('OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(problemOf(answer)).toMatchObject({ status: 404 });
  });

  test('a query that cannot be decoded is taken as it is', async () => {
    const response = await fetch(`${server.url}/healthz?%zz=%`);
    expect(response.status).toBe(200);
  });
});

describe('request ids', () => {
  test('a valid one is used, another is replaced', async () => {
    const idOf = async (given?: string) => {
      const headers = given === undefined ? {} : { 'x-request-id': given };
      return (await fetch(`${server.url}/healthz`, { headers })).headers.get('x-request-id');
    };
    expect(await idOf('trace-7:a.b_c~d')).toBe('trace-7:a.b_c~d');
    expect(await idOf('has space')).toMatch(/^[0-9A-Z]{26}$/);
    expect(await idOf('x'.repeat(129))).toMatch(/^[0-9A-Z]{26}$/);
    expect(await idOf()).toMatch(/^[0-9A-Z]{26}$/);
    expect(await idOf()).not.toBe(await idOf());
  });
});

describe('the access log', () => {
  const lineOf = (id: string) =>
    expect.poll(() => server.app.lines.find(({ fields }) => fields['request_id'] === id));

  test('has one line per request, by route and principal', async () => {
    const headers = { ...token, 'x-request-id': 'logged' };
    await fetch(`${server.url}/v1/admin/queues/mail?x=secret`, { headers });
    await fetch(`${server.url}/v1/admin/queues/mail`, {
      headers: { ...headers, 'x-request-id': 'q' },
    });
    await lineOf('logged').toMatchObject({
      level: 'info',
      message: 'request',
      fields: {
        method: 'GET',
        route: '/v1/admin/queues/{queue}',
        operation: 'getQueue',
        status: 422,
        principal: 'ada',
        duration_ms: expect.any(Number) as number,
      },
    });
    await lineOf('q').toMatchObject({ fields: { status: 200 } });
    expect(JSON.stringify(server.app.lines)).not.toContain('secret');
  });

  test('also has the requests that match no route', async () => {
    const headers = { 'x-request-id': 'lost' };
    await fetch(`${server.url}/nowhere`, { headers });
    await lineOf('lost').toMatchObject({ fields: { status: 404, operation: 'none', route: '' } });
  });

  test('can log successful reads at debug level', async () => {
    const quiet = await startSample({ quietReads: true });
    const sendRequest = (id: string, path: string, init: RequestInit = {}) =>
      fetch(`${quiet.url}${path}`, { ...init, headers: { ...token, 'x-request-id': id } });
    await sendRequest('read', '/v1/admin/queues/mail');
    await sendRequest('refused', '/v1/admin/queues/mail?x=1');
    await sendRequest('write', '/v1/admin/queues/mail:pause', { method: 'POST' });
    const levels = () =>
      quiet.app.lines.map(({ level, fields }) => `${String(fields['request_id'])} ${level}`);
    await expect.poll(() => levels().sort()).toEqual(['read debug', 'refused info', 'write info']);
    await quiet.close();
  });

  test('leaves health checks out', async () => {
    const headers = { 'x-request-id': 'pulse' };
    await fetch(`${server.url}/healthz`, { headers });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(server.app.lines.some(({ fields }) => fields['request_id'] === 'pulse')).toBe(false);
  });
});

test('requests are counted and timed by operation and status', async () => {
  const pause = { method: 'POST', headers: token };
  await fetch(`${server.url}/v1/admin/queues/mail:pause`, pause);
  await fetch(`${server.url}/v1/admin/queues/mail:pause`, { method: 'POST' });
  const name = 'millrace_sample_http_request_duration_seconds';
  await expect
    .poll(() => metrics.text())
    .toContain(`${name}_count{operation="pauseQueue",status="204"} 1`);
  const text = await metrics.text();
  expect(text).toContain(`${name}_bucket{operation="pauseQueue",status="401",le="+Inf"} 1`);
  expect(text).toContain('millrace_sample_http_requests_in_flight 0');
});

test('problems can carry members of the server', async () => {
  const app = sampleApp({
    shapeProblem: ({ instance: _instance, ...problem }) => ({ ...problem, error: problem.detail }),
  });
  const listener = await listen(app, '127.0.0.1:0');
  const problem = (await (await fetch(`${listener.url}/v1/x`)).json()) as object;
  expect(problem).toEqual({
    type: 'urn:millrace:problem:unauthenticated',
    title: 'Unauthenticated',
    status: 401,
    detail: 'Send a bearer token.',
    code: 'UNAUTHENTICATED',
    error: 'Send a bearer token.',
  });
  await listener.close();
});

test('a refusal brings its members, headers and field errors', async () => {
  const app = sampleApp({
    authenticate: () => {
      throw new Refusal('BUSY', 'Later.', {
        errors: [{ pointer: '/a', message: 'is wrong' }],
        members: { gate: 'budget' },
        headers: { RateLimit: 'r=0' },
        retryAfterMs: 0,
      });
    },
  });
  const answer = await inject(app, { url: '/v1/x' });
  expect(answer.headers).toMatchObject({ ratelimit: 'r=0', 'retry-after': '1' });
  expect(answer.json()).toMatchObject({
    errors: [{ pointer: '/a', message: 'is wrong' }],
    gate: 'budget',
  });
});

test('documents and metrics can be served beside the operations', async () => {
  const app = sampleApp({ metrics: createMetrics('other') });
  app.addPage('/openapi.yaml', (exchange) =>
    exchange.send(200, ['content-type', 'application/yaml'], 'openapi: 3.1.0\n'),
  );
  serveMetrics(app, metrics);
  const yaml = await inject(app, { url: '/openapi.yaml' });
  expect(yaml.headers['content-type']).toBe('application/yaml');
  expect(yaml.body).toBe('openapi: 3.1.0\n');
  const text = await inject(app, { url: '/metrics' });
  expect(text.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
  expect(text.body).toContain('millrace_sample_process_resident_memory_bytes');
});
