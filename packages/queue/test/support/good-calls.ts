import type { QueueOperationId } from '@millrace/contract/queue';
import { systemRandom } from '@millrace/kit/random';
import { newJobState } from '../../src/core/job.js';
import type { TestRequest } from './http-client.js';
import { makeQueue, plainConfig, type TestServer } from './server.js';
import { buryTasks, claim, submitOne } from './tasks.js';

/** What the calls below are about: every one of them may be made once on fresh grounds. */
export interface Grounds {
  queue: string;
  emptyQueue: string;
  newQueue: string;
  pullQueue: string;
  pendingId: string;
  deadId: string;
  /** A job that another server works on. */
  jobId: string;
  running: { id: string; token: string };
  flowId: string;
}

let made = 0;

/** A queue `mail...` with a schedule, a pending, a dead and a running task, and an empty one. */
export async function newGrounds(server: TestServer): Promise<Grounds> {
  const n = ++made;
  const queue = `mail.q${n}`;
  const emptyQueue = `mail.empty${n}`;
  await makeQueue(server, queue);
  await makeQueue(server, emptyQueue);
  await server.as('root', {
    method: 'PUT',
    path: `/v1/queues/${queue}/schedules/nightly`,
    body: { cron: '0 3 * * *', task: { handler_ref: 'a' } },
  });
  const pullQueue = `mail.pull${n}`;
  await makeQueue(server, pullQueue, { callback: { protocol: 'pull' } });
  const [deadId] = await buryTasks(server, 1, { queue });
  const runningId = await submitOne(server, queue);
  const [running] = await claim(server.store, queue, server.clock.now());
  const pendingId = await submitOne(server, queue, { delay_ms: 3_600_000, unique_key: 'order-1' });
  const flow = await server.as('root', {
    method: 'POST',
    path: '/v1/flows',
    body: { tasks: [{ key: 'a', queue: pullQueue, handler_ref: 'a' }] },
  });
  return {
    queue,
    emptyQueue,
    newQueue: `mail.new${n}`,
    pullQueue,
    pendingId,
    deadId: deadId!,
    jobId: await addJob(server, queue),
    running: { id: runningId, token: running!.lease!.token },
    flowId: String(flow.body['flow_id']),
  };
}

/** A job that is owned, so that it stays as it is. */
async function addJob(server: TestServer, queue: string): Promise<string> {
  const now = server.clock.now();
  const key = { table: 'job', queue, key: systemRandom.ulid(now) } as const;
  const body = { action: 'purge', selector: {}, target: { ids: [] }, gapMs: 0, by: 'root' };
  const state = { ...newJobState, owner: 'another', ownedUntil: now + 3_600_000 };
  await server.store.writeRows({ puts: [{ ...key, ifRevision: 0, body, value: state }], now });
  return key.key;
}

type CallOf = (grounds: Grounds) => TestRequest;

const settle =
  (verb: string, body: unknown): CallOf =>
  ({ running }) => ({
    method: 'POST',
    path: `/v1/tasks/${running.id}:${verb}`,
    headers: { 'x-queue-lease-token': running.token },
    body,
  });

const onSchedule =
  (verb: string): CallOf =>
  ({ queue }) => ({ method: 'POST', path: `/v1/queues/${queue}/schedules/nightly:${verb}` });

/** Without streams: events.test.ts and task-options.test.ts call them. */
export type EndingOperationId = Exclude<QueueOperationId, 'streamEvents' | 'backupQueues'>;

/** One call of each operation that goes well. */
export const goodCalls: Record<EndingOperationId, CallOf> = {
  submitTask: ({ queue }) => ({
    method: 'POST',
    path: `/v1/queues/${queue}/tasks`,
    body: { handler_ref: 'a' },
  }),
  submitBatch: ({ queue }) => ({
    method: 'POST',
    path: `/v1/queues/${queue}/tasks:batch`,
    body: [{ handler_ref: 'a' }, { handler_ref: 5 }],
  }),
  listTasks: ({ queue }) => ({ path: `/v1/queues/${queue}/tasks` }),
  countTasks: ({ queue }) => ({ path: `/v1/queues/${queue}/tasks:count` }),
  updateTask: ({ pendingId }) => ({
    method: 'PATCH',
    path: `/v1/tasks/${pendingId}`,
    body: { priority: 7 },
  }),
  cancelTask: ({ pendingId }) => ({
    method: 'POST',
    path: `/v1/tasks/${pendingId}:cancel`,
    body: { reason: 'withdrawn' },
  }),
  runTaskNow: ({ pendingId }) => ({ method: 'POST', path: `/v1/tasks/${pendingId}:run-now` }),
  cancelTasks: ({ queue }) => ({
    method: 'POST',
    path: `/v1/queues/${queue}/tasks:cancel`,
    body: { filter: { status: 'PENDING' } },
  }),
  getTask: ({ pendingId }) => ({ path: `/v1/tasks/${pendingId}` }),
  listDlq: ({ queue }) => ({ path: `/v1/queues/${queue}/dlq` }),
  redriveDlq: ({ queue, deadId }) => ({
    method: 'POST',
    path: `/v1/queues/${queue}/dlq:redrive`,
    body: { ids: [deadId] },
  }),
  purgeDlq: ({ queue }) => ({
    method: 'POST',
    path: `/v1/queues/${queue}/dlq:purge`,
    body: { filter: {} },
  }),
  listDlqGroups: ({ queue }) => ({ path: `/v1/queues/${queue}/dlq:groups` }),
  getQueueMetrics: ({ queue }) => ({ path: `/v1/queues/${queue}/metrics` }),
  getStats: ({ queue }) => ({ path: `/v1/queues/${queue}/stats` }),
  listJobs: ({ queue }) => ({ path: `/v1/queues/${queue}/jobs` }),
  getJob: ({ jobId }) => ({ path: `/v1/jobs/${jobId}` }),
  cancelJob: ({ jobId }) => ({ method: 'POST', path: `/v1/jobs/${jobId}:cancel` }),
  listSchedules: ({ queue }) => ({ path: `/v1/queues/${queue}/schedules` }),
  getSchedule: ({ queue }) => ({ path: `/v1/queues/${queue}/schedules/nightly` }),
  putSchedule: ({ queue }) => ({
    method: 'PUT',
    path: `/v1/queues/${queue}/schedules/hourly`,
    body: { cron: '0 * * * *', task: { handler_ref: 'a' } },
  }),
  deleteSchedule: ({ queue }) => ({
    method: 'DELETE',
    path: `/v1/queues/${queue}/schedules/nightly`,
  }),
  runSchedule: onSchedule('run-now'),
  pauseSchedule: onSchedule('pause'),
  resumeSchedule: onSchedule('resume'),
  pauseQueue: ({ queue }) => ({ method: 'POST', path: `/v1/admin/queues/${queue}:pause` }),
  resumeQueue: ({ queue }) => ({ method: 'POST', path: `/v1/admin/queues/${queue}:resume` }),
  listQueues: () => ({ path: '/v1/admin/queues' }),
  getQueueConfig: ({ queue }) => ({ path: `/v1/admin/queues/${queue}/config` }),
  putQueueConfig: ({ newQueue }) => ({
    method: 'PUT',
    path: `/v1/admin/queues/${newQueue}/config`,
    body: plainConfig,
  }),
  deleteQueue: ({ emptyQueue }) => ({ method: 'DELETE', path: `/v1/admin/queues/${emptyQueue}` }),
  testCallback: ({ queue }) => ({ method: 'POST', path: `/v1/admin/queues/${queue}:test` }),
  listAudit: () => ({ path: '/v1/admin/audit' }),
  submitFlow: ({ queue }) => ({
    method: 'POST',
    path: '/v1/flows',
    body: { tasks: [{ key: 'a', queue, handler_ref: 'a' }] },
  }),
  getFlow: ({ flowId }) => ({ path: `/v1/flows/${flowId}` }),
  recordSteps: ({ running }) => ({
    method: 'POST',
    path: `/v1/tasks/${running.id}/steps`,
    body: { lease_token: running.token, name: 'charge', result: { id: 1 } },
  }),
  sendSignal: ({ pendingId }) => ({
    method: 'POST',
    path: `/v1/tasks/${pendingId}/signals`,
    body: { name: 'approved' },
  }),
  sendQueueSignal: ({ queue }) => ({
    method: 'POST',
    path: `/v1/queues/${queue}/signals`,
    body: { unique_key: 'order-1', name: 'paid' },
  }),
  getTaskRun: ({ pendingId }) => ({ path: `/v1/tasks/${pendingId}/run` }),
  getTaskTree: ({ pendingId }) => ({ path: `/v1/tasks/${pendingId}/tree` }),
  completeTask: settle('complete', {}),
  failTask: settle('fail', { error_type: 'QUOTA', message: 'too much' }),
  extendTask: settle('extend', { extend_ms: 120_000 }),
  claimTasks: ({ pullQueue }) => ({
    method: 'POST',
    path: `/v1/queues/${pullQueue}/tasks:claim`,
    body: { worker: 'w1' },
  }),
  settleTasks: ({ queue, running }) => ({
    method: 'POST',
    path: `/v1/queues/${queue}/tasks:settle`,
    body: {
      items: [
        { id: running.id, lease_token: running.token, outcome: 'complete' },
        { id: running.id, lease_token: 'stale', outcome: 'fail' },
      ],
    },
  }),
  listWorkers: ({ queue }) => ({ path: `/v1/queues/${queue}/workers` }),
  getLiveness: () => ({ path: '/healthz' }),
  getReadiness: () => ({ path: '/readyz' }),
  getOpenapi: () => ({ path: '/openapi.yaml' }),
};
