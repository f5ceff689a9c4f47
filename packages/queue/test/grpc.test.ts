import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import { ErrorInfoSchema, StatusSchema } from '@millrace/contract/queue-grpc';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { createDelivery } from '../src/delivery/index.js';
import { queueV1 } from './support/grpc-handler.js';
import {
  endWithFile,
  makeQueue,
  newEmbeddedStore,
  startTestServer,
  tokens,
  type TestServer,
  type Who,
} from './support/server.js';

const onEnd = endWithFile();
let server: TestServer;
let client: any;
beforeAll(async () => {
  server = await startTestServer({
    onEnd,
    store: await newEmbeddedStore(onEnd),
    createDelivery,
    settings: { grpc: { host: '127.0.0.1', port: 0 } },
  });
  await makeQueue(server, 'mail', { callback: { protocol: 'pull' } });
  await makeQueue(server, 'mail.push');
  const { url } = server.running.listeners.find(({ listener }) => listener === 'grpc')!;
  client = new queueV1.Queue(new URL(url).host, grpc.credentials.createInsecure());
  onEnd(() => client.close());
});

function metadataOf(who: Who | null): grpc.Metadata {
  const metadata = new grpc.Metadata();
  if (who) metadata.set('authorization', `Bearer ${tokens[who]}`);
  return metadata;
}

const call = (method: string, request: object, who: Who | null = 'admin'): Promise<any> =>
  new Promise((resolve, reject) => {
    client[method](request, metadataOf(who), (error: unknown, answer: unknown) =>
      error ? reject(error as Error) : resolve(answer),
    );
  });

/** The gRPC code, the reason, and for a cancelled task the reason of that. */
async function failureOf(promise: Promise<unknown>): Promise<string[]> {
  const error = (await promise.then(
    () => {
      throw new Error('it succeeded');
    },
    (reason: unknown) => reason,
  )) as grpc.ServiceError;
  const [details] = error.metadata.get('grpc-status-details-bin') as Buffer[];
  const [info] = fromBinary(StatusSchema, details!).details;
  const { reason, metadata } = anyUnpack(info!, ErrorInfoSchema)!;
  return [grpc.status[error.code]!, reason, ...Object.values(metadata)];
}

/** The tasks of a stream, as they come. */
function claim(request: object, who: Who = 'worker') {
  const stream = client.Claim({ queue: 'mail', worker: 'w1', ...request }, metadataOf(who));
  const tasks: any[] = [];
  const ended = new Promise<unknown>((resolve) => {
    stream.on('error', resolve);
    stream.on('end', () => resolve(undefined));
  });
  stream.on('data', (task: unknown) => tasks.push(task));
  onTestFinished(() => stream.cancel());
  return { stream, tasks, ended };
}

const soon = { timeout: 60_000, interval: 20 };

test('submit: stores a task with its payload, and GetTask finds it', async () => {
  const payload = Buffer.from('hello');
  const headers = { 'X-Tenant': 'acme' };
  const request = { queue: 'mail.push', handler_ref: 'a', payload, headers, priority: 7 };
  const task = await call('Submit', { ...request, delay_ms: 60_000 }, 'submitter');
  expect(task).toMatchObject({ queue: 'mail.push', status: 'PENDING', priority: 7, attempt: 0 });
  const found = await call('GetTask', { id: task.id }, 'submitter');
  expect(found).toMatchObject({ id: task.id, payload, headers, waiting_for: 'time' });
  expect(Number(found.created_at.seconds)).toBeGreaterThan(1_700_000_000);
  expect(await call('Stats', { queue: 'mail.push' })).toMatchObject({ pending: 1, in_flight: 0 });
});

test('submit batch: a result for each task', async () => {
  const tasks = [{ handler_ref: 'a', delay_ms: 60_000 }, { handler_ref: '' }];
  const { results } = await call('SubmitBatch', { queue: 'mail.push', tasks });
  expect(results).toMatchObject([
    { index: 0, status: 202, envelope: { status: 'PENDING' } },
    { index: 1, status: 422, error: { code: 'INVALID_TASK' } },
  ]);
});

test('claim: streams tasks as they come, at most max_outstanding unsettled ones', async () => {
  const { tasks } = claim({ max_outstanding: 2 });
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    ids.push((await call('Submit', { queue: 'mail', handler_ref: 'a' })).id);
  }
  await expect.poll(() => tasks.length, soon).toBe(2);
  const settle = (method: string, task: any, more = {}) =>
    call(method, { id: task.id, lease_token: task.lease_token, ...more }, 'worker');
  expect(await settle('Extend', tasks[0], { extend_ms: 60_000 })).toMatchObject({
    status: 'IN_FLIGHT',
  });
  expect(await settle('Complete', tasks[0])).toMatchObject({ status: 'SUCCEEDED' });
  await expect.poll(() => tasks.length, soon).toBe(3);
  const failed = await settle('Fail', tasks[1], { retry: false, message: 'no', error_type: 'BAD' });
  expect(failed).toMatchObject({ status: 'DEAD', last_error: { error_type: 'BAD' } });
  await settle('Complete', tasks[2]);
  expect(tasks.map(({ id }) => id)).toEqual(ids);
  const stale = call('Complete', { id: ids[2], lease_token: 'stale' }, 'worker');
  expect(await failureOf(stale)).toEqual(['FAILED_PRECONDITION', 'LEASE_LOST']);
});

test('list tasks: pages through a queue with the filters of the REST API', async () => {
  await makeQueue(server, 'mail.list');
  const submit = (handler_ref: string) =>
    call('Submit', { queue: 'mail.list', handler_ref, delay_ms: 60_000 });
  const ids: string[] = [];
  for (const ref of ['a', 'b', 'a']) ids.push((await submit(ref)).id);
  const list = (request: object) =>
    call('ListTasks', { queue: 'mail.list', order: 'oldest', ...request }, 'operator');
  const first = await list({ limit: 2 });
  expect(first.tasks).toMatchObject([{ id: ids[0], waiting_for: 'time' }, { id: ids[1] }]);
  expect(first.tasks[0]).toMatchObject({ payload: Buffer.alloc(0), attempts: [] });
  const second = await list({ limit: 2, cursor: first.next_cursor });
  expect(second).toMatchObject({ tasks: [{ id: ids[2] }], next_cursor: '' });
  const idsOf = async (request: object) =>
    (await list(request)).tasks.map(({ id }: { id: string }) => id);
  expect(await idsOf({ handler_ref: 'a', status: ['PENDING'] })).toEqual([ids[0], ids[2]]);
  expect(await idsOf({ status: ['DEAD', 'SUCCEEDED'] })).toEqual([]);
  const later = { seconds: Math.floor(server.clock.now() / 1000) + 3_600 };
  expect(await idsOf({ from: later })).toEqual([]);
  expect(await idsOf({ to: later, limit: 100_000 })).toEqual(ids);
});

test('cancel: makes a task DEAD, once, and the worker gets the reason with LEASE_LOST', async () => {
  const { tasks } = claim({});
  const { id } = await call('Submit', { queue: 'mail', handler_ref: 'a' });
  await expect.poll(() => tasks.length, soon).toBe(1);
  const cancelled = await call('CancelTask', { id, reason: 'not needed' }, 'operator');
  const last_error = { error_type: 'CANCELLED', message: 'not needed' };
  expect(cancelled).toMatchObject({ status: 'DEAD', dead_reason: 'CANCELLED', last_error });
  expect(await call('CancelTask', { id }, 'operator')).toMatchObject({ status: 'DEAD' });
  const { lease_token } = tasks[0];
  const late = call('Complete', { id, lease_token }, 'worker');
  expect(await failureOf(late)).toEqual(['FAILED_PRECONDITION', 'LEASE_LOST', 'CANCELLED']);
});

test('complete: keeps the result and the progress of a task', async () => {
  const { tasks } = claim({});
  const { id } = await call('Submit', { queue: 'mail', handler_ref: 'a', unique_key: 'k1' });
  await expect.poll(() => tasks.length, soon).toBe(1);
  const again = await call('Submit', { queue: 'mail', handler_ref: 'a', unique_key: 'k1' });
  expect(again.id).toBe(id);
  const { lease_token } = tasks[0];
  const progress = { percent: 12.5, message: 'half of a quarter' };
  await call('Extend', { id, lease_token, extend_ms: 1_000, progress }, 'worker');
  const waiting = call('GetTask', { id, wait_ms: 20_000 });
  const notJson = call('Complete', { id, lease_token, result: Buffer.from('{') }, 'worker');
  expect(await failureOf(notJson)).toEqual(['INVALID_ARGUMENT', 'INVALID_TASK']);
  const large = Buffer.from(JSON.stringify('x'.repeat(65_536)));
  const tooLarge = call('Complete', { id, lease_token, result: large }, 'worker');
  expect(await failureOf(tooLarge)).toEqual(['INVALID_ARGUMENT', 'RESULT_TOO_LARGE']);
  await call('Complete', { id, lease_token, result: Buffer.from('{"n": 1}') }, 'worker');
  const task = await waiting;
  expect(task).toMatchObject({ status: 'SUCCEEDED', unique_key: 'k1', progress });
  expect(JSON.parse(task.result.toString())).toEqual({ n: 1 });
  expect(await call('Stats', { queue: 'mail' })).toHaveProperty('succeeded_total');
});

test('task: one of a queue without a grant does not exist for the caller', async () => {
  const { id } = await call('Submit', { queue: 'mail', handler_ref: 'a', delay_ms: 60_000 });
  const settle = { id, lease_token: 'x' };
  for (const [method, request] of [
    ['GetTask', { id }],
    ['CancelTask', { id }],
    ['Complete', settle],
    ['Fail', settle],
    ['Extend', { ...settle, extend_ms: 1_000 }],
  ] as const) {
    const refused = await failureOf(call(method, request, 'stranger'));
    expect(refused, method).toEqual(['NOT_FOUND', 'TASK_NOT_FOUND']);
  }
  const low = call('CancelTask', { id }, 'submitter');
  expect(await failureOf(low)).toEqual(['PERMISSION_DENIED', 'FORBIDDEN']);
});

const beyondTime = { seconds: 1e15 };

test.each([
  ['ListTasks', { queue: 'mail' }, 'submitter', 'PERMISSION_DENIED', 'FORBIDDEN'],
  ['ListTasks', { queue: 'mail' }, 'worker', 'PERMISSION_DENIED', 'FORBIDDEN'],
  ['ListTasks', {}, 'operator', 'INVALID_ARGUMENT', 'INVALID_QUERY'],
  ['Stats', {}, 'operator', 'INVALID_ARGUMENT', 'INVALID_QUERY'],
  ['Submit', { handler_ref: 'a' }, 'root', 'INVALID_ARGUMENT', 'INVALID_TASK'],
  [
    'SubmitBatch',
    { queue: 'mail', tasks: [{ queue: 'mail.no', handler_ref: 'a' }] },
    'root',
    'INVALID_ARGUMENT',
    'INVALID_TASK',
  ],
  ['SubmitFlow', { tasks: [{ key: 'a' }] }, 'root', 'INVALID_ARGUMENT', 'INVALID_FLOW'],
  ['SendSignal', { name: 'go' }, 'root', 'INVALID_ARGUMENT', 'INVALID_TASK'],
  ['Fail', { id: 'x' }, 'worker', 'INVALID_ARGUMENT', 'INVALID_TASK'],
  ['ListTasks', { queue: 'mail.no' }, 'operator', 'NOT_FOUND', 'QUEUE_NOT_FOUND'],
  ['ListTasks', { queue: 'mail', order: 'next' }, 'operator', 'INVALID_ARGUMENT', 'INVALID_QUERY'],
  ['ListTasks', { queue: 'mail', order: 'x' }, 'operator', 'INVALID_ARGUMENT', 'INVALID_QUERY'],
  ['ListTasks', { queue: 'mail', status: ['x'] }, 'admin', 'INVALID_ARGUMENT', 'INVALID_QUERY'],
  ['ListTasks', { queue: 'mail', from: beyondTime }, 'admin', 'INVALID_ARGUMENT', 'INVALID_QUERY'],
  ['ListTasks', { queue: 'mail', cursor: 'x' }, 'admin', 'FAILED_PRECONDITION', 'STALE_CURSOR'],
  ['GetTask', { id: 'x', wait_ms: 60_001 }, 'admin', 'INVALID_ARGUMENT', 'INVALID_QUERY'],
  ['CancelTask', { id: 'nonsense' }, 'operator', 'NOT_FOUND', 'TASK_NOT_FOUND'],
  [
    'Submit',
    { queue: 'mail', handler_ref: 'a', run_at: beyondTime },
    'admin',
    'INVALID_ARGUMENT',
    'INVALID_TASK',
  ],
  ['Submit', { queue: 'mail', handler_ref: 'a' }, null, 'UNAUTHENTICATED', 'UNAUTHENTICATED'],
  ['Submit', { queue: 'mail', handler_ref: 'a' }, 'worker', 'PERMISSION_DENIED', 'FORBIDDEN'],
  ['Submit', { queue: 'mail.no', handler_ref: 'a' }, 'admin', 'NOT_FOUND', 'QUEUE_NOT_FOUND'],
  ['Submit', { queue: 'mail', handler_ref: '' }, 'admin', 'INVALID_ARGUMENT', 'INVALID_TASK'],
  ['GetTask', { id: 'nonsense' }, 'admin', 'NOT_FOUND', 'TASK_NOT_FOUND'],
  ['Stats', { queue: 'other' }, 'admin', 'PERMISSION_DENIED', 'FORBIDDEN'],
] as const)('%s %j as %s fails with %s %s', async (method, request, who, code, reason) => {
  expect(await failureOf(call(method, request, who))).toEqual([code, reason]);
});

test.each([
  [{ queue: 'mail.push' }, 'worker', 'ABORTED', 'QUEUE_NOT_PULL'],
  [{ max_outstanding: 101 }, 'worker', 'INVALID_ARGUMENT', 'INVALID_CLAIM'],
  [{ worker: '' }, 'worker', 'INVALID_ARGUMENT', 'INVALID_CLAIM'],
  [{ worker: 'a\u001b[2J' }, 'worker', 'INVALID_ARGUMENT', 'INVALID_CLAIM'],
  [{}, 'submitter', 'PERMISSION_DENIED', 'FORBIDDEN'],
] as const)('claim %j as %s fails with %s %s', async (request, who, code, reason) => {
  const { ended } = claim(request, who);
  expect(await failureOf(ended.then((error) => Promise.reject(error as Error)))).toEqual([
    code,
    reason,
  ]);
});

test('serve: an address in use is a usage error that names the flag', async () => {
  const { url } = server.running.listeners.find(({ listener }) => listener === 'grpc')!;
  expect(url).toMatch(/^grpc:/);
  const { port } = new URL(url);
  const second = startTestServer({ settings: { grpc: { host: '127.0.0.1', port: Number(port) } } });
  await expect(second).rejects.toThrow(/already in use.*--grpc/);
});

test.each([
  ['that waits for tasks', 0],
  ['with max_outstanding unsettled tasks', 1],
])('claim: a stream %s ends when the server shuts down', async (_, unsettled) => {
  const own = await startTestServer({
    createDelivery,
    settings: { grpc: { host: '127.0.0.1', port: 0 } },
  });
  await makeQueue(own, 'mail', { callback: { protocol: 'pull' } });
  const { url } = own.running.listeners.find(({ listener }) => listener === 'grpc')!;
  const other = new queueV1.Queue(new URL(url).host, grpc.credentials.createInsecure());
  onTestFinished(() => other.close());
  const stream = other.Claim({ queue: 'mail', worker: 'w1' }, metadataOf('worker'));
  const ended = new Promise((resolve) => stream.on('end', resolve).on('error', resolve));
  stream.on('data', () => undefined);
  const submit = { method: 'POST', path: '/v1/queues/mail/tasks', body: { handler_ref: 'a' } };
  if (unsettled) await own.as('submitter', submit);
  const workers = async () =>
    (await own.as('operator', { path: '/v1/queues/mail/workers' })).body['workers'];
  await expect.poll(workers, soon).toMatchObject([{ in_flight: unsettled }]);
  await own.running.stop();
  expect(await ended).toBeUndefined();
});

test('claim: a cancelled stream hands back the tasks that it did not write', async () => {
  await makeQueue(server, 'mail.large', { callback: { protocol: 'pull' } });
  const payload = Buffer.alloc(2 ** 20, 7);
  const count = 12;
  for (let i = 0; i < count; i++) {
    await call('Submit', { queue: 'mail.large', handler_ref: 'a', payload });
  }
  const request = { queue: 'mail.large', worker: 'w1', max_outstanding: count };
  // Nobody reads it, so that only the first tasks are written.
  const stream = client.Claim(request, metadataOf('worker'));
  stream.on('error', () => undefined);
  const stats = () => call('Stats', { queue: 'mail.large' });
  await expect.poll(stats, soon).toMatchObject({ in_flight: count });
  stream.cancel();
  await expect.poll(async () => (await stats()).in_flight, soon).toBeLessThan(count / 2);
});

test('flows: dependencies, steps, signals, suspension and tree over gRPC', async () => {
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));
  const flow = await call('SubmitFlow', {
    tasks: [
      { key: 'a', task: { queue: 'mail', handler_ref: 'g.a' } },
      {
        key: 'b',
        task: { queue: 'mail', handler_ref: 'g.b', depends_on: [{ key: 'a', on: 'end' }] },
      },
    ],
  });
  const [a, b] = flow.tasks.map(({ id }: { id: string }) => id) as [string, string];
  expect((await call('GetTask', { id: b })).waiting_for).toBe('dependencies');
  expect((await call('ListTasks', { queue: 'mail', flow_id: flow.flow_id })).tasks).toHaveLength(2);
  expect((await call('Stats', { queue: 'mail' })).blocked).toBe(1);
  const first = claim({ handlers: ['g.a'], max_outstanding: 1 });
  await expect.poll(() => first.tasks.length).toBe(1);
  const held = { id: a, lease_token: first.tasks[0].lease_token };
  const { steps } = await call('RecordSteps', { ...held, steps: [{ name: 's', result: json(1) }] });
  expect(steps).toMatchObject([{ name: 's', recorded: true }]);
  expect(String(steps[0].result)).toBe('1');
  const suspended = await call('Complete', { ...held, suspend: { signals: ['go'] } });
  expect(suspended).toMatchObject({ status: 'PENDING', attempt: 0, step_count: 1 });
  expect((await call('GetRun', { id: a })).wait).toMatchObject({ kind: 'signal', signals: ['go'] });
  const sent = await call('SendSignal', { task_id: a, name: 'go', payload: json({ x: 1 }) });
  expect(String(sent.payload)).toBe('{"x":1}');
  await expect.poll(() => first.tasks.length).toBe(2);
  const woken = first.tasks[1];
  expect(woken).toMatchObject({ woken_by: { kind: 'signal', name: 'go' }, steps: [{ name: 's' }] });
  expect(String(woken.signals[0].payload)).toBe('{"x":1}');
  const run = await call('GetRun', { id: a });
  expect(String(run.steps[0].result)).toBe('1');
  const child = { queue: 'mail', handler_ref: 'g.c', parent_id: a };
  const { id } = await call('Submit', { ...child, parent_lease_token: woken.lease_token });
  const tree = await call('GetTree', { id: a });
  expect(tree.root).toMatchObject({ id: a, steps: ['s'], children: [{ id }] });
  const done = { id: a, lease_token: woken.lease_token, result: json([2]) };
  const last = { name: 'last', result: json('z'), consumes: [sent.id] };
  await call('Complete', { ...done, steps: [last] });
  const after = await call('GetRun', { id: a });
  expect(after.steps.map(({ name }: { name: string }) => name)).toEqual(['s', 'last']);
  expect([String(after.steps[1].result), after.signals]).toEqual(['"z"', []]);
  const second = claim({ handlers: ['g.b'] });
  await expect.poll(() => second.tasks.length).toBe(1);
  expect(second.tasks[0].dependencies).toMatchObject([{ id: a, key: 'a', status: 'SUCCEEDED' }]);
  expect(String(second.tasks[0].dependencies[0].result)).toBe('[2]');
  expect(await failureOf(call('SendSignal', { task_id: a, name: 'go' }))).toEqual([
    'FAILED_PRECONDITION',
    'TASK_ENDED',
  ]);
});
