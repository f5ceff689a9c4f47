import { openApiDocument } from '@millrace/contract/documents';
import { queueCodes, queueOperations } from '@millrace/contract/queue';
import type { QueueCode, QueueOperationId } from '@millrace/contract/queue';
import { afterAll, describe, expect, test } from 'vitest';
import { contractDifferences } from '../../kit/test/http/contract-check.js';
import { roleLevels } from '../src/operations/base/context.js';
import { MemoryStore } from './support/memory-store/index.js';
import { StorageUnavailable, type TaskStore } from '../src/storage/port/task-store.js';
import type { TestResponse, TestRequest } from './support/http-client.js';
import { boundApp } from './support/bound-app.js';
import {
  type EndingOperationId,
  goodCalls,
  newGrounds,
  type Grounds,
} from './support/good-calls.js';
import { makeQueue, startTestServer, tokens } from './support/server.js';
import { submitOne } from './support/tasks.js';
import { operations, wireDifferences } from './support/wire-check.js';

const server = await startTestServer({ onEnd: afterAll });
await makeQueue(server, 'other.queue');
await makeQueue(server, 'mail.slow', { limits: { submit_per_second: 0.001 } });
const foreignId = await submitOne(server, 'other.queue');

/** Every code that was returned, as `operation CODE`. */
const seen = new Set<string>();
const document = openApiDocument('queue');
const roles = roleLevels.flat();
const ids = Object.keys(goodCalls) as EndingOperationId[];

/** A store whose methods all fail with one error. */
function failing(error: Error): TaskStore {
  const real = new MemoryStore();
  return new Proxy(real, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (['onWork', 'onCancelled', 'onEnded', 'close'].includes(String(name))) {
        return value.bind(target) as unknown;
      }
      return async () => {
        throw error;
      };
    },
  });
}

const broken = await startTestServer({
  onEnd: afterAll,
  store: failing(new Error('secret internals')),
});
const away = await startTestServer({
  onEnd: afterAll,
  store: failing(new StorageUnavailable('no route to the database')),
});
const busy = await busyServer();

/** A server with as many requests under way as it takes, all waiting for its store. */
async function busyServer() {
  const real = new MemoryStore();
  let letGo: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  const store = new Proxy(real, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name !== 'listQueues') return value.bind(target) as unknown;
      return () => held.then(() => target.listQueues());
    },
  });
  const started = await startTestServer({ onEnd: afterAll, store, settings: { max_inflight: 1 } });
  const reserve = 64;
  const waiting = Array.from({ length: 1 + reserve }, () =>
    started.as('root', { path: '/v1/admin/queues' }),
  );
  afterAll(async () => {
    letGo();
    await Promise.all(waiting);
  });
  const isFull = async () => (await started.as('root', { path: '/v1/admin/audit' })).status === 429;
  while (!(await isFull()));
  return started;
}

const large = Buffer.alloc(16 * 2 ** 20 + 1, 0x20);
const unknownId = '01JD3Z8Q4M7X2N5V9RTBKWCH6E';

/** Turns a good call into one that is refused with the code. */
type Spoil = (good: TestRequest, grounds: Grounds) => TestRequest | Promise<TestResponse>;

const withPath = (good: TestRequest, from: string, to: string): TestRequest => ({
  ...good,
  path: good.path.replace(from, to),
});
const asRoot = (request: TestRequest): TestRequest => ({ token: tokens.root, ...request });

/** The ways that work for every operation which lists the code. */
const commonSpoils: Partial<Record<QueueCode, Spoil>> = {
  UNAUTHENTICATED: (good) => ({ ...good, token: undefined }),
  FORBIDDEN: (good) => ({ ...good, token: tokens.nobody }),
  QUEUE_NOT_FOUND: (good, { queue, emptyQueue, pullQueue }) =>
    [queue, emptyQueue, pullQueue].reduce(
      (request, name) => withPath(request, name, 'mail.nowhere'),
      good,
    ),
  TASK_NOT_FOUND: (good, { pendingId, running }) =>
    withPath(withPath(good, pendingId, unknownId), running.id, unknownId),
  PAYLOAD_TOO_LARGE: (good) => ({ ...good, body: large }),
  UNSUPPORTED_MEDIA_TYPE: (good) => ({ ...good, contentType: 'text/plain' }),
  INVALID_TASK: (good) => ({ ...good, body: 'x' }),
  INVALID_SELECTOR: (good) => ({ ...good, body: {} }),
  INVALID_CLAIM: (good) => ({ ...good, body: {} }),
  INVALID_CONFIG: (good) => ({ ...good, body: {} }),
  INVALID_SCHEDULE: (good) => ({ ...good, body: {} }),
  JOB_NOT_FOUND: (good, { jobId }) => withPath(good, jobId, unknownId),
  SCHEDULE_NOT_FOUND: (good) => withPath(good, 'nightly', 'none'),
  INVALID_QUERY: (good) => ({ ...good, path: `${good.path}?nonsense=1` }),
  STALE_CURSOR: (good) => ({ ...good, path: `${good.path}?cursor=x` }),
  RATE_LIMITED: (good) => busy.send(asRoot(good)),
  INTERNAL: (good) => broken.send(asRoot(good)),
  STORAGE_UNAVAILABLE: (good) => away.send(asRoot(good)),
};

/** Without any grant a task or a job does not exist, so a role that is too low is needed. */
const asSubmitter: Partial<Record<QueueCode, Spoil>> = {
  FORBIDDEN: (good) => ({ ...good, token: tokens.submitter }),
};

const flowOf = (task: object) => ({ tasks: [{ key: 'a', handler_ref: 'a', ...task }] });

const signalSpoils: Partial<Record<QueueCode, Spoil>> = {
  TASK_ENDED: (good, { pendingId, deadId }) => withPath(good, pendingId, deadId),
  SIGNALS_FULL: async (good) => {
    for (let i = 0; i < 100; i++) await server.send(good);
    return server.send(good);
  },
};

/** The ways of one operation alone. */
const ownSpoils: Partial<Record<QueueOperationId, Partial<Record<QueueCode, Spoil>>>> = {
  submitTask: {
    ID_CONFLICT: (good) => ({ ...good, body: { id: foreignId, handler_ref: 'a' } }),
    TASK_ENDED: (good, { deadId }) => ({ ...good, body: { handler_ref: 'a', parent_id: deadId } }),
    LEASE_LOST: (good, { running }) => ({
      ...good,
      body: { handler_ref: 'a', parent_id: running.id, parent_lease_token: 'stale' },
    }),
  },
  submitFlow: {
    QUEUE_NOT_FOUND: (good) => ({ ...good, body: flowOf({ queue: 'mail.nowhere' }) }),
    INVALID_FLOW: (good) => ({ ...good, body: { tasks: [] } }),
    ID_CONFLICT: (good, { queue }) => ({ ...good, body: flowOf({ queue, id: foreignId }) }),
    TASK_ENDED: (good, { queue, deadId }) => ({
      ...good,
      body: flowOf({ queue, parent_id: deadId }),
    }),
    LEASE_LOST: (good, { queue, running }) => ({
      ...good,
      body: flowOf({ queue, parent_id: running.id, parent_lease_token: 'stale' }),
    }),
  },
  recordSteps: {
    LEASE_LOST: (good) => ({ ...good, body: { lease_token: 'stale', name: 'a' } }),
    TOO_MANY_STEPS: (good, { running }) => {
      const body = { lease_token: running.token, name: 'more' };
      return recordMany(running).then(() => server.send({ ...good, body }));
    },
    STEP_TOO_LARGE: (good, { running }) => ({
      ...good,
      body: { lease_token: running.token, name: 'a', result: 'x'.repeat(262_144) },
    }),
  },
  sendSignal: { ...signalSpoils, FORBIDDEN: (good) => ({ ...good, token: tokens.worker }) },
  sendQueueSignal: {
    ...signalSpoils,
    TASK_NOT_FOUND: (good) => ({ ...good, body: { unique_key: 'none', name: 'a' } }),
    TASK_ENDED: async (good, { queue, pendingId }) => {
      // A key with a time is held beyond the end of its task.
      const body = { handler_ref: 'a', unique_key: 'timed', unique_for_ms: 60_000 };
      const made = await server.as('root', { ...good, path: `/v1/queues/${queue}/tasks`, body });
      expect(pendingId).not.toBe(made.body['id']);
      await server.as('root', {
        method: 'POST',
        path: `/v1/tasks/${String(made.body['id'])}:cancel`,
      });
      return server.send({ ...good, body: { unique_key: 'timed', name: 'a' } });
    },
  },
  getTaskRun: {
    FORBIDDEN: (good) => ({ ...good, token: tokens.worker }),
    INVALID_TASK: (good) => ({ ...good, headers: { 'x-queue-lease-token': 'x'.repeat(300) } }),
  },
  getTaskTree: { FORBIDDEN: (good) => ({ ...good, token: tokens.worker }) },
  getFlow: { TASK_NOT_FOUND: (good, { flowId, deadId }) => withPath(good, flowId, deadId) },
  submitBatch: {
    BATCH_TOO_LARGE: (good) => ({
      ...good,
      body: Array.from({ length: 1_001 }, () => ({ handler_ref: 'a' })),
    }),
  },
  putQueueConfig: {
    PRECONDITION_FAILED: (good) => ({ ...good, headers: { 'if-match': '"7"' } }),
    CALLBACK_URL_NOT_ALLOWED: (good) => ({
      ...good,
      body: { callback: { url: 'http://10.1.2.3/' } },
    }),
  },
  deleteQueue: {
    QUEUE_NOT_EMPTY: (good, { queue, emptyQueue }) => withPath(good, emptyQueue, queue),
  },
  claimTasks: {
    QUEUE_NOT_PULL: (good, { queue, pullQueue }) => withPath(good, pullQueue, queue),
  },
  updateTask: {
    ...asSubmitter,
    TASK_NOT_PENDING: (good, { pendingId, deadId }) => withPath(good, pendingId, deadId),
  },
  cancelTask: {
    ...asSubmitter,
    TASK_FINISHED: (good, { pendingId, deadId }) => withPath(good, pendingId, deadId),
  },
  runTaskNow: {
    ...asSubmitter,
    TASK_NOT_PENDING: (good, { pendingId, running }) => withPath(good, pendingId, running.id),
  },
  getTask: {
    FORBIDDEN: (good) => ({ ...good, token: tokens.worker }),
    INVALID_QUERY: (good) => ({ ...good, path: `${good.path}?wait_ms=60001` }),
  },
  getJob: asSubmitter,
  redriveDlq: { INVALID_QUERY: (good) => ({ ...good, path: `${good.path}?async=maybe` }) },
  purgeDlq: { INVALID_QUERY: (good) => ({ ...good, path: `${good.path}?async=maybe` }) },
  listSchedules: { INVALID_QUERY: (good) => ({ ...good, path: `${good.path}?limit=x` }) },
  cancelJob: {
    ...asSubmitter,
    JOB_FINISHED: async (good) => {
      await server.send(good);
      return server.send(good);
    },
  },
  completeTask: {
    LEASE_LOST: lostLease,
    RESULT_TOO_LARGE: (good) => ({ ...good, body: { result: 'x'.repeat(65_536) } }),
    STEP_TOO_LARGE: (good) => ({
      ...good,
      body: { steps: [{ name: 'a', result: 'x'.repeat(262_144) }] },
    }),
    TOO_MANY_STEPS: (good, { running }) =>
      recordMany(running).then(() => server.send({ ...good, body: { steps: [{ name: 'more' }] } })),
  },
  failTask: { LEASE_LOST: lostLease },
  extendTask: { LEASE_LOST: lostLease },
};

async function recordMany({ id, token }: { id: string; token: string }): Promise<void> {
  const steps = Array.from({ length: 1_000 }, (_, i) => ({ name: `s${i}` }));
  const path = `/v1/tasks/${id}/steps`;
  await server.as('root', { method: 'POST', path, body: { lease_token: token, steps } });
}

function lostLease(good: TestRequest): TestRequest {
  return { ...good, headers: { 'x-queue-lease-token': 'stale' } };
}

/** For the common ways, none of which changes anything. */
const unchanged = newGrounds(server);

describe.each(ids)('%s', (id) => {
  const operation = operations.get(id)!;

  test('answers as documented when all is well', async () => {
    const grounds = await newGrounds(server);
    const answer = await server.send(asRoot(goodCalls[id](grounds)));
    expect(answer.status, answer.text).toBeLessThan(300);
    expect(wireDifferences(id, answer)).toEqual([]);
    expect(server.differences).toEqual([]);
  });

  test.each([...queueOperations[id].codes] as QueueCode[])('refuses with %s', async (code) => {
    const own = ownSpoils[id]?.[code];
    const spoil = own ?? commonSpoils[code];
    const grounds = await (own ? newGrounds(server) : unchanged);
    expect(spoil, `no way is known to make ${id} answer ${code}`).toBeDefined();
    const request = spoil!(asRoot(goodCalls[id](grounds)), grounds);
    const answer = request instanceof Promise ? await request : await server.send(request);
    expect(answer.body?.['code'], answer.text).toBe(code);
    expect(answer.body).toMatchObject(queueCodes[code]);
    expect(wireDifferences(id, answer)).toEqual([]);
    expect([server, broken, away, busy].flatMap(({ differences }) => differences)).toEqual([]);
    seen.add(`${id} ${code}`);
    checkHeaders(code, answer);
  });

  test('asks for no more than it documents', () => {
    expect(operation.codes).toEqual(queueOperations[id].codes);
  });
});

function checkHeaders(code: QueueCode, { headers, text }: TestResponse): void {
  if (code === 'UNAUTHENTICATED') {
    expect(headers['www-authenticate']).toBe('Bearer realm="millrace"');
  }
  if (code === 'STORAGE_UNAVAILABLE') expect(headers['retry-after']).toBe('5');
  if (code === 'RATE_LIMITED') {
    expect(headers['retry-after']).toBe('1');
    expect(headers['ratelimit']).toBe('"load";r=0;t=1');
  }
  if (code === 'INTERNAL') expect(text).not.toContain('secret internals');
}

test('the codes that were answered are those of the document, both ways', async () => {
  const documented = ids.flatMap((id) => queueOperations[id].codes.map((code) => `${id} ${code}`));
  expect([...seen].toSorted()).toEqual(documented.toSorted());
  const route = await server.as('root', { path: '/v1/nothing' });
  const method = await server.as('root', { method: 'DELETE', path: '/healthz' });
  const answered = new Set([...seen].map((pair) => pair.split(' ')[1]!));
  for (const { body } of [route, method]) answered.add(String(body['code']));
  // Of a download; task-options.test.ts makes it.
  answered.add('BACKUP_UNAVAILABLE');
  const listed = Object.keys(document['x-error-codes'] as object);
  expect([...answered].toSorted()).toEqual(listed.toSorted());
});

test('the items of a batch are refused with the codes that the document lists', async () => {
  const path = '/v1/queues/mail.slow/tasks:batch';
  await makeQueue(server, 'mail.slow', {
    limits: { submit_per_second: 0.001, max_payload_bytes: 4 },
  });
  const body = [
    { id: foreignId, handler_ref: 'a' },
    { handler_ref: 'a', payload: 'aGVsbG8=' },
    { handler_ref: '' },
    { handler_ref: 'a' },
  ];
  const answer = await server.as('root', { method: 'POST', path, body });
  const results = answer.body as unknown as { error?: { code: string } }[];
  const codes = results.map(({ error }) => error?.code);
  const documented = operations.get('submitBatch')!.extensions['x-item-codes'];
  expect(codes).toEqual(documented);
  expect(wireDifferences('submitBatch', answer)).toEqual([]);
});

test('the server is the image of its document', async () => {
  const headers = { authorization: `Bearer ${tokens.root}` };
  expect(await contractDifferences(document, boundApp(), { headers, roles })).toEqual([]);
});

test('every operation asks for a known role, on what its grant scope says', () => {
  for (const { id, isPublic, minRole, extensions } of operations.values()) {
    if (isPublic) continue;
    expect(roles, id).toContain(minRole);
    expect(['queue', 'task', 'job', 'any', 'granted'], id).toContain(extensions['x-grant-scope']);
  }
});

test('HEAD is answered wherever GET is, without the body', async () => {
  const grounds = await newGrounds(server);
  for (const { id, method } of operations.values()) {
    if (method !== 'GET' || !(id in goodCalls)) continue;
    const answer = await server.send({
      ...asRoot(goodCalls[id as EndingOperationId](grounds)),
      method: 'HEAD',
    });
    expect([id, answer.status, answer.text]).toEqual([id, 200, '']);
  }
});

test('the document is handed out as it was written, without a token', async () => {
  const answer = await server.send({ path: '/openapi.yaml' });
  expect(answer.headers['content-type']).toBe('application/yaml');
  expect(answer.text).toContain('operationId: submitTask');
});
