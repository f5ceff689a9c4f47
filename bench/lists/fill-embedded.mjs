/** Fills an embedded queue by its own calls, with about the same mix of tasks as on PostgreSQL. */
import { groups, isRare, queue } from './cases.mjs';
import { queueConfig } from '../shared/stores.mjs';

const batch = 1_000;
const day = 86_400_000;
const payload = Buffer.from('x'.repeat(200));

export async function fillEmbedded(store, count) {
  const from = Date.now();
  await store.putQueue({ queue, config: queueConfig, now: from, by: 'bench', ifVersion: 0 });
  let n = 0;
  while (n < count) {
    const now = Date.now();
    const tasks = Array.from({ length: Math.min(batch, count - n) }, () => newTask(++n, now));
    await store.insertTasks(tasks, now);
    // The last tenth stays ready.
    if (n < count * 0.9) await workOff(store, now);
  }
  return { from, to: Date.now() };
}

/** One in ten waits for its time. */
function newTask(n, now) {
  return {
    id: `01KE6S000000000${String(n).padStart(11, '0')}`,
    queue,
    handlerRef: isRare(n) ? 'rare' : 'common',
    payload,
    payloadContentType: 'text/plain',
    headers: {},
    priority: n % 10,
    groupKey: `group-${n % groups}`,
    dueAt: n % 10 === 1 ? now + day : now,
    expiresAt: null,
    submittedBy: 'shop',
    maxPending: 0,
  };
}

async function workOff(store, now) {
  const claimed = await claim(store, { queue, limit: batch, now });
  await store.settle(claimed.map((task) => settlement(task, now)));
}

export function claim(store, request) {
  return store.claimDue({
    ...request,
    nodeId: 'bench',
    leaseExpiresAt: request.now + day,
    newToken: () => `token-${Math.random()}`,
    maxInFlight: 10_000,
    dispatchPerSecond: 0,
    fifoGroups: false,
  });
}

/** One in a hundred dies. */
export function settlement({ id, attempt, lease }, now) {
  const n = Number(id.slice(15));
  const isDead = n % 100 === 0;
  const errorType = isRare(n) ? 'refused' : 'timeout';
  const httpStatus = isRare(n) ? 418 : 504;
  return {
    id,
    token: lease.token,
    now,
    verdict: isDead ? { kind: 'dead', reason: 'PERMANENT' } : { kind: 'succeeded' },
    error: isDead ? { errorType, message: 'failed', httpStatus, at: now } : undefined,
    attempt: {
      attempt,
      redrive: 0,
      startedAt: lease.startedAt,
      endedAt: now,
      durationMs: 1,
      outcome: isDead ? 'FAILED' : 'SUCCEEDED',
      errorType: isDead ? errorType : null,
      message: isDead ? 'failed' : null,
      httpStatus: isDead ? httpStatus : 200,
      retryAfterMs: null,
      nextAttemptAt: null,
      responseSnippet: null,
      url: null,
      remoteIp: null,
      nodeId: lease.nodeId,
      traceId: null,
    },
  };
}
