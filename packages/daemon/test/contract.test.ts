import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { daemonOperations } from '@millrace/contract/daemon';
import { openApiDocument } from '@millrace/contract/documents';
import { systemClock } from '@millrace/kit/clock';
import {
  contractDifferences,
  DocumentSchemas,
  operationsOf,
  type OpenApiDocument,
  type OperationDescription,
} from '@millrace/kit/http';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Gate } from '../src/server/access/gate.js';
import { Throttle } from '../src/server/access/throttle.js';
import { Tokens } from '../src/server/access/tokens.js';
import { daemonApp } from '../src/server/app.js';
import { notYet, servedDocument } from '../src/server/not-yet.js';
import { expectProblem, expectSchema, type Ask, type Reply } from './support/client.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';

const whole = openApiDocument('daemon') as unknown as OpenApiDocument;
const document = servedDocument(whole);
const operations = operationsOf(document);
const schemas = new DocumentSchemas(whole);

const token = 'full-token-of-the-contract-test';
const readOnlyToken = 'reading-token-of-the-contract-test';
const bearer = (value: string) => ({ authorization: `Bearer ${value}` });

let open: TestDaemon;
let closed: TestDaemon;
let throttled: TestDaemon;
let quiet: TestDaemon;

beforeAll(async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-contract-'));
  const clis = new FakeClis(join(home, 'bin'));
  clis.addEmpty('claude', 'gemini');
  const guarded = { token, 'read-only-token': readOnlyToken };
  [open, closed, throttled, quiet] = await Promise.all([
    startDaemon({ home, path: clis.path }),
    startDaemon({ flags: guarded }),
    startDaemon({ flags: guarded }),
    startDaemon({ flags: { 'api-docs': 'off', savings: 'off', insights: 'off' } }),
  ]);
});
afterAll(() => Promise.all([open, closed, throttled, quiet].map((daemon) => daemon.dispose())));

/** A request of each operation that is answered well. */
const mcpHeaders = { accept: 'application/json, text/event-stream' };
const good: Record<string, Ask> = {
  getHealth: { path: '/healthz' },
  getDocs: { path: '/api/docs' },
  getOpenapi: { path: '/api/docs/openapi.yaml' },
  getDocsAsset: { path: '/api/docs/assets/swagger-ui.css' },
  listBackends: { path: '/api/v1/backends' },
  getUsage: { path: '/api/v1/usage?refresh=true' },
  rescanBackends: { method: 'POST', path: '/api/v1/backends/rescan' },
  setDefaultBackend: { method: 'PUT', path: '/api/v1/backends/default', body: { id: 'claude' } },
  setThinkingMode: {
    method: 'PUT',
    path: '/api/v1/backends/thinking-mode',
    body: { mode: 'local_only' },
  },
  updateBackend: {
    method: 'PATCH',
    path: '/api/v1/backends/claude',
    body: { tier: 'subscription' },
  },
  getSpend: { path: '/api/v1/spend' },
  getInsights: { path: '/api/v1/insights?since=30d' },
  getSavings: { path: '/api/v1/savings?since=7d&bucket=day&samples=1' },
  think: { method: 'POST', path: '/api/v1/think', body: { prompt: 'What is a millrace?' } },
  getConfig: { path: '/api/v1/config' },
  postMcp: {
    method: 'POST',
    path: '/mcp',
    headers: mcpHeaders,
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  },
};

const seen = new Set<string>();

async function expectRefusal(
  daemon: TestDaemon,
  operation: OperationDescription,
  code: string,
  ask: Ask,
): Promise<Reply> {
  const reply = await daemon.api.send(ask);
  expect([operation.id, code, reply.json?.code]).toEqual([operation.id, code, code]);
  expectProblem(reply);
  expect(operation.codes).toContain(code);
  expect(operation.responses.map(({ status }) => status)).toContain(reply.status);
  seen.add(`${operation.id} ${code}`);
  return reply;
}

describe('every operation that is served', () => {
  test.each(operations.map((operation) => [operation.id, operation] as const))(
    '%s answers as the contract says',
    async (id, operation) => {
      const reply = await open.api.send(good[id]!);
      expect([id, reply.status, reply.text]).toEqual([id, 200, reply.text]);
      const type = String(reply.headers['content-type']).split(';')[0];
      const { contents } = operation.responses.find(({ status }) => status === 200)!;
      const content = contents.find(({ mediaType }) => mediaType === type);
      expect(content, `${type} is documented`).toBeDefined();
      if (reply.json === undefined) return;
      const check = schemas.at(content!.pointer!);
      expect(check.accepts(reply.json) ? [] : check.faults(reply.json)).toEqual([]);
      expect(reply.headers['x-content-type-options']).toBe('nosniff');
      expect(reply.headers['cache-control']).toBe('no-store');
    },
  );

  test.each(operations.map((operation) => [operation.id, operation] as const))(
    '%s refuses as the contract says',
    async (id, operation) => {
      const ask = good[id]!;
      const { headers = {} } = ask;
      const refuse = (daemon: TestDaemon, code: string, change: Partial<Ask>) =>
        expectRefusal(daemon, operation, code, { ...ask, ...change });

      await refuse(open, 'FORBIDDEN', { headers: { ...headers, host: 'evil.example' } });
      await refuse(open, 'FORBIDDEN', { headers: { ...headers, origin: 'https://evil.example' } });
      if (!operation.isPublic) {
        const stranger = await refuse(closed, 'UNAUTHENTICATED', {});
        expect(stranger.headers['www-authenticate']).toContain('Bearer');
        await throttled.api.guessTokens();
        const slowed = await refuse(throttled, 'TOO_MANY_ATTEMPTS', {
          headers: { ...headers, ...bearer(token) },
        });
        expect(Number(slowed.headers['retry-after'])).toBeGreaterThan(0);
      }
      if (operation.extensions['x-access'] === 'write') {
        await refuse(closed, 'FORBIDDEN', { headers: { ...headers, ...bearer(readOnlyToken) } });
      }
      if (operation.body) {
        await refuse(open, 'INVALID_REQUEST', { body: { nope: 1 } });
        await refuse(open, 'INVALID_REQUEST', {
          body: '{',
          headers: { ...headers, 'content-type': 'application/json' },
        });
        await refuse(open, 'UNSUPPORTED_MEDIA_TYPE', {
          body: JSON.stringify(ask.body),
          headers: { ...headers, 'content-type': 'text/plain' },
        });
        await refuse(open, 'PAYLOAD_TOO_LARGE', {
          body: ' '.repeat(operation.bodyLimitBytes! + 1),
          headers: { ...headers, 'content-type': 'application/json' },
        });
      }
      if (operation.codes.includes('FEATURE_DISABLED')) {
        await refuse(quiet, 'FEATURE_DISABLED', {});
      }
      if (operation.codes.includes('SAVINGS_DISABLED')) {
        await refuse(quiet, 'SAVINGS_DISABLED', {});
      }
    },
  );

  test('what only some of them refuse', async () => {
    const refuse = (id: string, code: string, ask: Ask) =>
      expectRefusal(
        open,
        operations.find((each) => each.id === id)!,
        code,
        ask,
      );
    await refuse('getUsage', 'INVALID_REQUEST', { path: '/api/v1/usage?refresh=perhaps' });
    await refuse('getUsage', 'INVALID_REQUEST', { path: '/api/v1/usage?fresh=true' });
    await refuse('getInsights', 'INVALID_REQUEST', { path: '/api/v1/insights?since=soon' });
    for (const query of ['since=yesterday', 'since=0h', 'samples=perhaps', 'from=7d']) {
      await refuse('getSavings', 'INVALID_REQUEST', { path: `/api/v1/savings?${query}` });
    }
    await refuse('getDocsAsset', 'NOT_FOUND', { path: '/api/docs/assets/nope.js' });
    await refuse('getDocsAsset', 'NOT_FOUND', { path: '/api/docs/assets/..%2Fpackage.json' });
    await refuse('postMcp', 'NOT_ACCEPTABLE', { ...good['postMcp']!, headers: {} });
    const patch = good['updateBackend']!;
    for (const id of ['nobody', 'a%20b', '%2e%2e']) {
      await refuse('updateBackend', 'BACKEND_NOT_FOUND', {
        ...patch,
        path: `/api/v1/backends/${id}`,
      });
    }
    for (const body of [{ tier: 'local' }, { tier: 'gold' }, { tier: null }, { enabled: 'yes' }]) {
      await refuse('updateBackend', 'INVALID_REQUEST', { ...patch, body });
    }
    await refuse('updateBackend', 'INVALID_REQUEST', {
      ...patch,
      path: '/api/v1/backends/local',
    });
    const put = good['setDefaultBackend']!;
    await refuse('setDefaultBackend', 'BACKEND_NOT_FOUND', { ...put, body: { id: 'nobody' } });
    await refuse('setDefaultBackend', 'BACKEND_NOT_ELIGIBLE', { ...put, body: { id: 'local' } });
  });

  test('a fault of ours shows nothing of itself', async () => {
    const log = memoryLog();
    const world = { clock: systemClock, random: systemRandom, log };
    const broken = new Proxy({} as never, {
      get: () => () => {
        throw new Error('secret internals');
      },
    });
    const app = brokenApp(world, broken);
    for (const { id, codes } of operations) {
      if (!codes.includes('INTERNAL') || neverFails.has(id)) continue;
      const { method = 'GET', path, headers, body } = good[id]!;
      const answer = await app.fastify.inject({
        method: method as 'GET',
        url: path,
        headers: { host: 'localhost', ...(headers as Record<string, string>) },
        ...(body !== undefined && { payload: body as object }),
      });
      expect([id, answer.statusCode]).toEqual([id, 500]);
      expectSchema('Problem', answer.json());
      expect(answer.body).not.toContain('secret');
      seen.add(`${id} INTERNAL`);
    }
    await app.fastify.close();
  });

  test('no code of the contract was left out above', () => {
    const promised = operations.flatMap(({ id, codes }) =>
      codes
        .filter((code) => code !== 'INTERNAL' || !neverFails.has(id))
        .map((code) => `${id} ${code}`),
    );
    expect(promised.filter((pair) => !seen.has(pair))).toEqual([]);
  });
});

/** They answer from memory, or carry what goes wrong inside the protocol's own messages. */
const neverFails = new Set(['getDocs', 'getOpenapi', 'getDocsAsset', 'postMcp']);

function brokenApp(world: Parameters<typeof daemonApp>[0]['world'], broken: never) {
  const nothing = { given: undefined, file: '/nowhere/token' };
  const tokens = new Tokens({ token: nothing, readOnly: nothing, log: world.log });
  return daemonApp({
    world,
    gate: new Gate(tokens, new Throttle(world.clock)),
    apiDocs: true,
    context: {
      backends: broken,
      thinker: broken,
      usage: broken,
      savings: broken,
      spend: broken,
      insights: broken,
      config: () => {
        throw new Error('secret internals');
      },
    },
  });
}

test('the server and the contract list the same operations, codes and methods', async () => {
  const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
  const app = brokenApp(world, undefined as never);
  const headers = { host: 'localhost' };
  const differences = await contractDifferences(document, app, { headers, admitsAnyone: true });
  // Schemas of what is not served yet are nobody's fault.
  expect(differences.filter((each) => !each.startsWith('No operation uses'))).toEqual([]);
  await app.fastify.close();
});

test('what is not served yet is not there, and together with the rest it is the contract', async () => {
  const served = operations.map(({ id }) => id);
  expect([...served, ...notYet].sort()).toEqual(Object.keys(daemonOperations).sort());
  for (const id of notYet) {
    const { method, path } = daemonOperations[id];
    const reply = await open.api.send({
      method,
      path: path.replaceAll(/\{\w+\}/g, 'x'),
      body: {},
    });
    expect([id, [404, 405].includes(reply.status)]).toEqual([id, true]);
    expectProblem(reply);
  }
});

test('unknown paths need a token first, where one is set', async () => {
  await open.api.refused({ path: '/api/v1/nothing' }, 404, 'NOT_FOUND');
  await closed.api.refused({ path: '/api/v1/nothing' }, 401, 'UNAUTHENTICATED');
  await closed.api.refused({ path: '/mcp' }, 401, 'UNAUTHENTICATED');
  await closed.api.refused({ path: '/nothing' }, 404, 'NOT_FOUND');
  const reply = await open.api.send({ method: 'DELETE', path: '/mcp' });
  expectProblem(reply);
  expect([reply.status, reply.headers['allow']]).toEqual([405, 'POST']);
  await open.api.refused(
    { method: 'PATCH', path: '/api/v1/backends/default' },
    405,
    'METHOD_NOT_ALLOWED',
  );
});
