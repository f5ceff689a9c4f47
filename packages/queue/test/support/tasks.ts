import { systemRandom } from '@millrace/kit/random';
import type { Attempt, WholeTask } from '../../src/core/task.js';
import type { TaskStore, Verdict } from '../../src/storage/port/task-store.js';
import type { TestServer } from './server.js';

/** Submits a task as root and answers its id. */
export async function submitOne(
  server: TestServer,
  queue = 'mail',
  more: Record<string, unknown> = {},
): Promise<string> {
  const answer = await server.as('root', {
    method: 'POST',
    path: `/v1/queues/${queue}/tasks`,
    body: { handler_ref: 'mail.send', ...more },
  });
  if (answer.status !== 202) throw new Error(`Not submitted: ${answer.text}`);
  return String(answer.body['id']);
}

/** Takes due tasks as a dispatcher would, each under a lease of a minute. */
export function claim(store: TaskStore, queue: string, now: number, limit = 1) {
  return store.claimDue({
    queue,
    limit,
    now,
    nodeId: 'test-node',
    leaseExpiresAt: now + 60_000,
    newToken: () => Buffer.from(systemRandom.bytes(12)).toString('base64url'),
    maxInFlight: 100_000,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
}

export interface Failure {
  errorType?: string;
  httpStatus?: number | null;
  at?: number;
}

/** Submits tasks and lets each die; the ids in the order of their deaths. */
export async function buryTasks(
  server: TestServer,
  count: number,
  { queue = 'mail', ...failure }: Failure & { queue?: string } = {},
  more: Record<string, unknown> = {},
): Promise<string[]> {
  const ids: string[] = [];
  const start = failure.at ?? server.clock.now() - count;
  for (let n = 0; n < count; n++) {
    const id = await submitOne(server, queue, more);
    const [task] = await claim(server.store, queue, server.clock.now());
    if (task?.id !== id) throw new Error('Another task came first');
    await end(
      server.store,
      task,
      { kind: 'dead', reason: 'PERMANENT' },
      { ...failure, at: start + n },
    );
    ids.push(id);
  }
  return ids;
}

/** Settles a claimed task. */
export async function end(
  store: TaskStore,
  task: WholeTask,
  verdict: Verdict,
  { errorType = 'HTTP_5XX', httpStatus = 500, at = Date.now() }: Failure = {},
): Promise<void> {
  const isGood = verdict.kind === 'succeeded';
  const message = 'it failed';
  const attempt: Attempt = {
    attempt: task.attempt,
    redrive: task.redriveCount,
    startedAt: task.lease!.startedAt,
    endedAt: at,
    durationMs: Math.max(0, at - task.lease!.startedAt),
    outcome: isGood ? 'SUCCEEDED' : 'FAILED',
    errorType: isGood ? null : errorType,
    message: isGood ? null : message,
    httpStatus,
    retryAfterMs: null,
    nextAttemptAt: null,
    responseSnippet: null,
    url: null,
    remoteIp: null,
    nodeId: 'test-node',
    traceId: null,
  };
  const error = isGood ? {} : { error: { errorType, message, httpStatus, at } };
  const token = task.lease!.token;
  const [result] = await store.settle([
    { id: task.id, token, now: at, verdict, attempt, ...error },
  ]);
  if (result?.kind !== 'settled') throw new Error(`Not settled: ${result?.kind}`);
}
