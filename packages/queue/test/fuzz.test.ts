import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import type { TestRequest } from './support/http-client.js';
import { type EndingOperationId, goodCalls, newGrounds } from './support/good-calls.js';
import { newEmbeddedStore, startTestServer, tokens } from './support/server.js';

const store = await newEmbeddedStore(afterAll);
const server = await startTestServer({ onEnd: afterAll, store });
const grounds = await newGrounds(server);
const ids = Object.keys(goodCalls) as EndingOperationId[];
const runs = 1_500;

/** Another value in some place of a JSON value. */
function planted(value: unknown, path: readonly number[], other: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined || typeof value !== 'object' || value === null) return other;
  const copy = structuredClone(value) as Record<string, unknown>;
  const keys = Object.keys(copy);
  const key = keys[step % Math.max(1, keys.length)] ?? 'extra';
  copy[key] = planted(copy[key], rest, other);
  return copy;
}

const oddText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', ' ', '\0', '\ud800', '__proto__', '../..', '%00', '*', 'null', '0', '-1'),
);
const oddValue = fc.oneof(
  fc.jsonValue(),
  oddText,
  fc.double(),
  fc.constantFrom<unknown>(null, true, [], {}, 1e308, -0, Number.MAX_SAFE_INTEGER + 1),
);

type Change = (request: TestRequest) => TestRequest;

const changes: fc.Arbitrary<Change> = fc.oneof(
  fc
    .tuple(fc.array(fc.nat(7), { maxLength: 3 }), oddValue)
    .map(([path, other]): Change => (a) => ({ ...a, body: planted(a.body ?? {}, path, other) })),
  fc
    .tuple(fc.nat(), fc.nat(3), fc.uint8Array({ maxLength: 8 }))
    .map(([at, cut, bytes]): Change => (a) => {
      const text = Buffer.from(JSON.stringify(a.body ?? {}));
      const start = at % (text.length + 1);
      return {
        ...a,
        body: Buffer.concat([text.subarray(0, start), bytes, text.subarray(start + cut)]),
      };
    }),
  oddText.map((text): Change => (a) => ({
    ...a,
    path: `${a.path}?${encodeURIComponent(text.toWellFormed())}=1`,
  })),
  fc
    .tuple(
      fc.constantFrom('limit', 'cursor', 'from', 'to', 'error_type', 'queue', 'validate_only'),
      oddText,
    )
    .map(([name, text]): Change => (a) => ({
      ...a,
      path: `${a.path}?${name}=${encodeURIComponent(text.toWellFormed())}`,
    })),
  fc.tuple(fc.nat(6), oddText).map(([at, text]): Change => (a) => {
    const parts = a.path.split('/');
    parts[at % parts.length] = encodeURIComponent(text.toWellFormed());
    return { ...a, path: `/${parts.join('/')}`.replace(/^\/\//, '/') };
  }),
  fc
    .constantFrom('GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND')
    .map((method): Change => (a) => ({ ...a, method })),
  fc
    .tuple(
      fc.constantFrom(
        'if-match',
        'x-queue-lease-token',
        'content-type',
        'content-encoding',
        'x-request-id',
        'authorization',
      ),
      fc.string({ unit: 'grapheme-ascii', maxLength: 300 }),
    )
    .map(([name, value]): Change => (a) => ({
      ...a,
      headers: { ...a.headers, [name]: value.trim() },
    })),
  fc
    .constantFrom<string | undefined>(undefined, ...Object.values(tokens))
    .map((token): Change => (a) => ({ ...a, token })),
);

test('fuzz: no request causes an internal error or stays unanswered', async () => {
  const counts = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...ids),
      fc.array(changes, { minLength: 1, maxLength: 4 }),
      async (id, list) => {
        const good: TestRequest = { token: tokens.root, ...goodCalls[id](grounds) };
        const odd = list.reduce((request, change) => change(request), good);
        const answer = await server.send(odd);
        counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
        expect([answer.status, answer.text]).not.toEqual([500, expect.anything()]);
        expect(server.differences.splice(0)).toEqual([]);
      },
    ),
    { numRuns: runs },
  );
  const bugs = server.log.lines.filter(({ message }) => message === 'internal error');
  expect(bugs).toEqual([]);
  // A run that only ever meets the first check would prove little.
  for (const status of [200, 202, 401, 403, 404, 405, 415, 422]) {
    expect(counts.get(status) ?? 0, `answers of ${status}`).toBeGreaterThan(0);
  }
});

test('fuzz: invalid HTTP is answered or disconnected, and the server keeps serving', async () => {
  const { hostname, port } = new URL(server.url);
  const send = (bytes: Uint8Array) =>
    new Promise<string>((resolve) => {
      let got = '';
      const socket = connect(Number(port), hostname, () => socket.end(bytes));
      socket.on('data', (chunk: Buffer) => (got += chunk.toString('latin1')));
      socket.on('error', () => resolve(got));
      socket.on('close', () => resolve(got));
    });
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.uint8Array({ maxLength: 200 }),
        fc
          .string()
          .map((text) => Buffer.from(`POST /v1/queues/mail/tasks HTTP/1.1\r\n${text}\r\n\r\n`)),
        fc.constantFrom(
          Buffer.from('GET /healthz HTTP/9.9\r\n\r\n'),
          Buffer.from('GET  HTTP/1.1\r\n\r\n'),
          Buffer.from(`GET /healthz HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`),
          Buffer.from(
            'POST /v1/queues/mail/tasks HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n',
          ),
          Buffer.from('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),
        ),
      ),
      async (bytes) => {
        const got = await send(bytes);
        expect(got).not.toMatch(/^HTTP\/1\.1 500/);
      },
    ),
    { numRuns: 100 },
  );
  expect((await server.send({ path: '/healthz' })).status).toBe(200);
});
