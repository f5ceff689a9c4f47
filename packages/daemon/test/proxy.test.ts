import { request } from 'node:http';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeUpstream } from './support/fake-upstream.js';

const token = 'full-token-of-the-proxy-test';
const readOnlyToken = 'reading-token-of-the-proxy-test';
const bearer = (value: string) => ({ authorization: `Bearer ${value}` });

let queue: FakeUpstream;
let database: FakeUpstream;
let daemon: TestDaemon;

beforeAll(async () => {
  [queue, database] = await Promise.all([FakeUpstream.start(), FakeUpstream.start()]);
  daemon = await startDaemon({
    flags: {
      token,
      'read-only-token': readOnlyToken,
      'queue-url': queue.url,
      'queue-token': 'token-of-the-queue',
      'database-url': `${database.url}/below/`,
      'database-api-key': 'key-of-the-database',
    },
  });
});
afterAll(async () => {
  await daemon.dispose();
  await Promise.all([queue.close(), database.close()]);
});

const full = () => daemon.api.withHeaders(bearer(token));
const reader = () => daemon.api.withHeaders(bearer(readOnlyToken));
const queues = '/api/v1/proxy/queue';
const db = '/api/v1/proxy/db';
const json = { 'content-type': 'application/json' };

describe('what reaches the server behind the daemon', () => {
  test('is the path and the query as they were sent', async () => {
    await full().ok('GET', `${queues}/v1/queues/mail/dlq?from=2026-01-01T00%3A00%3A00Z&limit=2`);
    expect(queue.last.target).toBe('/v1/queues/mail/dlq?from=2026-01-01T00%3A00%3A00Z&limit=2');
    await full().ok('GET', `${db}/v1/people/keys/a%2Fb%3Ac%20d`);
    expect(database.last.target).toBe('/below/v1/people/keys/a%2Fb%3Ac%20d');
  });

  test('is the body byte for byte', async () => {
    const body = '{ "data": {"n": 9007199254740993, "x": "\\u00e9"} }';
    const path = `${db}/v1/people/records`;
    await full().send({ method: 'POST', path, headers: json, body });
    expect(database.last).toMatchObject({ method: 'POST', text: body });
    expect(database.last.headers['content-type']).toBe('application/json');
  });

  test('carries the credentials of the daemon and none of the caller', async () => {
    const headers = {
      'x-api-key': 'from the caller',
      cookie: 'a=b',
      origin: daemon.url,
      accept: 'application/x-ndjson',
      'x-forwarded-for': '10.0.0.1',
    };
    await full().send({ path: `${queues}/v1/admin/queues`, headers });
    const { headers: toQueue } = queue.last;
    expect(toQueue.authorization).toBe('Bearer token-of-the-queue');
    expect(toQueue.accept).toBe('application/x-ndjson');
    await full().send({ path: `${db}/v1/admin/replication`, headers });
    const { headers: toDatabase } = database.last;
    expect(toDatabase['x-api-key']).toBe('key-of-the-database');
    expect(toDatabase.authorization).toBeUndefined();
    for (const each of [toQueue, toDatabase]) {
      expect(Object.keys(each).sort()).toEqual(
        expect.arrayContaining(['accept', 'accept-encoding', 'connection', 'host', 'x-request-id']),
      );
      expect(each).not.toHaveProperty('cookie');
      expect(each).not.toHaveProperty('origin');
      expect(each).not.toHaveProperty('x-forwarded-for');
    }
    expect(toQueue).not.toHaveProperty('x-api-key');
  });

  test('is nothing that is not on the list', async () => {
    const before = queue.received.length + database.received.length;
    for (const [method, path] of [
      ['GET', `${queues}/v1/admin/audit`],
      ['GET', `${queues}/v1/queues/../admin/audit`],
      ['POST', `${queues}/v1/tasks/01K9ZT6A8B0C2D4E6F8G1H3J5K:complete`],
      ['POST', `${db}/v1/admin:promote`],
      ['POST', `${db}/v1/admin:backup`],
      ['DELETE', `${db}/v1/people/keys/ada`],
    ] as const) {
      await full().refused({ method, path }, 404, 'NOT_FOUND');
    }
    await full().refused({ method: 'PUT', path: `${queues}/v1/x` }, 404, 'NOT_FOUND');
    await full().refused({ method: 'PUT', path: `${db}/v1/x` }, 405, 'METHOD_NOT_ALLOWED');
    await full().refused({ path: queues }, 404, 'NOT_FOUND');
    expect(queue.received.length + database.received.length).toBe(before);
  });
});

describe('a read-only token', () => {
  test.each([
    ['POST', `${queues}/v1/queues/mail/dlq:redrive`, { filter: {}, dry_run: true }],
    ['POST', `${queues}/v1/queues/mail/dlq:purge`, { ids: [], dry_run: true }],
    ['POST', `${db}/v1/people/records:find`, {}],
    ['POST', `${db}/v1/people/records:aggregate`, {}],
  ])('may %s %s', async (method, path, body) => {
    await reader().ok(method, path, body);
  });

  test.each([
    ['POST', `${queues}/v1/queues/mail/dlq:redrive`, { filter: {} }],
    ['POST', `${queues}/v1/queues/mail/dlq:purge`, { filter: {}, dry_run: 'true' }],
    ['POST', `${queues}/v1/queues/mail/dlq:purge`, [{ dry_run: true }]],
    ['POST', `${queues}/v1/queues/mail/tasks`, { handler_ref: 'x', dry_run: true }],
    ['POST', `${queues}/v1/admin/queues/mail:pause`, undefined],
    ['POST', `${db}/v1/people/records`, { data: {} }],
    ['POST', `${db}/v1/people/records/1:updateIfRev`, { data: {} }],
    ['DELETE', `${db}/v1/people/records/1`, undefined],
  ])('may not %s %s', async (method, path, body) => {
    const before = queue.received.length + database.received.length;
    await reader().refused({ method, path, body }, 403, 'FORBIDDEN');
    expect(queue.received.length + database.received.length).toBe(before);
  });
});

describe('what comes back', () => {
  test('is the status and the problem as they are, without the headers of others', async () => {
    const problem = {
      type: 'urn:millrace:problem:stale-cursor',
      status: 410,
      code: 'STALE_CURSOR',
    };
    const reply = await queue.answering(
      (response) => {
        response.writeHead(410, {
          'content-type': 'application/problem+json',
          'set-cookie': 'a=b',
          'www-authenticate': 'Bearer',
          'x-powered-by': 'someone',
          location: 'http://example.org/',
          'retry-after': '7',
          'keep-alive': 'timeout=5',
        });
        response.end(JSON.stringify(problem));
      },
      () => full().send({ path: `${queues}/v1/queues/mail/dlq` }),
    );
    expect([reply.status, reply.json]).toEqual([410, problem]);
    expect(reply.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'retry-after': '7',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    for (const name of ['set-cookie', 'www-authenticate', 'x-powered-by', 'location']) {
      expect(reply.headers).not.toHaveProperty(name);
    }
  });

  test('is nothing at all for a 204, and no body for HEAD', async () => {
    const pause = { method: 'POST', path: `${queues}/v1/admin/queues/mail:pause` };
    const paused = await queue.answering(
      (response) => response.writeHead(204).end(),
      () => full().send(pause),
    );
    expect([paused.status, paused.text]).toEqual([204, '']);
    const head = await full().send({ method: 'HEAD', path: `${queues}/v1/admin/queues` });
    expect([head.status, head.text, queue.last.method]).toEqual([200, '', 'GET']);
  });

  test('breaks off where it broke off', async () => {
    const half = queue.answering(
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 });
        response.write('{"half":', () => response.destroy());
      },
      () => full().send({ path: `${queues}/v1/admin/queues` }),
    );
    await expect(half).rejects.toThrow(/aborted|hang up|ECONNRESET/);
  });

  test('says what to do when nothing listens there', async () => {
    const gone = await FakeUpstream.start();
    const { url } = gone;
    await gone.close();
    const lonely = await startDaemon({ flags: { 'queue-url': url, 'database-url': url } });
    const { detail } = await lonely.api.refused(
      { path: `${queues}/v1/admin/queues` },
      502,
      'UPSTREAM_UNREACHABLE',
    );
    expect(detail).toBe(
      `The queue server at ${url} is not running. Start it with \`ctl up\`, ` +
        'or set queue.url to its address.',
    );
    await lonely.api.refused({ path: `${db}/v1/admin/replication` }, 502, 'UPSTREAM_UNREACHABLE');
    await lonely.dispose();
  });

  test('never is a 401, which would be taken for one of the daemon', async () => {
    const { detail } = await database.answering(401, () =>
      full().refused({ path: `${db}/v1/admin/replication` }, 502, 'UPSTREAM_REFUSED'),
    );
    expect(detail).toContain('database.api_key');
  });
});

describe('a stream', () => {
  /** Watches through a daemon and hands over the lines as they come. */
  function watch(url: string, headers: Record<string, string>) {
    const { hostname, port } = new URL(url);
    const path = `${db}/v1/people/records:watch`;
    const asking = request({ host: hostname, port, method: 'POST', path, headers });
    const lines: string[] = [];
    const ended = once(asking, 'response').then(async ([answer]) => {
      for await (const chunk of answer) lines.push(String(chunk));
      return 'ended';
    });
    ended.catch(() => undefined);
    asking.on('error', () => undefined);
    asking.end('{}');
    return { asking, lines, ended };
  }
  const headers = { ...json, ...bearer(token) };

  test('comes as it is written, and ends with the caller', async () => {
    let upstreamClosed = false;
    await database.answering(
      (response) => {
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        response.write('{"seq":1}\n');
        response.on('close', () => {
          upstreamClosed = true;
        });
      },
      async () => {
        const { asking, lines } = watch(daemon.url, headers);
        await vi.waitFor(() => expect(lines.join('')).toBe('{"seq":1}\n'), 60_000);
        expect(upstreamClosed).toBe(false);
        asking.destroy();
        await vi.waitFor(() => expect(upstreamClosed).toBe(true), 60_000);
      },
    );
  });

  test('sends its headers before its first line', async () => {
    await database.answering(
      (response) =>
        response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders(),
      async () => {
        const { asking } = watch(daemon.url, headers);
        const [answer] = await once(asking, 'response');
        expect(answer.headers['content-type']).toBe('application/x-ndjson');
        asking.destroy();
      },
    );
  });

  test('ends when the daemon stops, without being cut', async () => {
    const other = await startDaemon({ flags: { 'database-url': database.url } });
    await database.answering(
      (response) => {
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        response.write('{"seq":1}\n');
      },
      async () => {
        const { lines, ended } = watch(other.url, json);
        await vi.waitFor(() => expect(lines).toHaveLength(1), 60_000);
        await other.dispose();
        expect(await ended).toBe('ended');
      },
    );
  });
});
