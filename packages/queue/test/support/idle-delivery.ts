import type { DeliveryOptions } from '../../src/delivery/index.js';
import type { RunningDelivery } from '../../src/server/server.js';
import type { SettleResult, Settlement, Verdict } from '../../src/storage/port/task-store.js';

type Parts = Pick<DeliveryOptions, 'store' | 'observer'>;

/**
 * A delivery that starts nothing by itself, for tests in which the test is the dispatcher: it
 * claims from the store and settles over the API.
 */
export function idleDelivery({ store, observer }: Parts): RunningDelivery {
  const settle = async (
    id: string,
    token: string,
    verdict: Verdict,
    more: Pick<Settlement, 'result' | 'steps' | 'maxSteps'> = {},
  ) => {
    const now = Date.now();
    const failure = { errorType: 'INTERNAL', message: 'failed', httpStatus: null, at: now };
    const isFailure = verdict.kind !== 'succeeded';
    const settlement: Settlement = {
      id,
      token,
      now,
      verdict,
      attempt: {
        attempt: 1,
        redrive: 0,
        startedAt: now,
        endedAt: now,
        durationMs: 0,
        outcome: isFailure ? 'FAILED' : 'SUCCEEDED',
        errorType: isFailure ? 'INTERNAL' : null,
        message: isFailure ? 'failed' : null,
        httpStatus: null,
        retryAfterMs: null,
        nextAttemptAt: null,
        responseSnippet: null,
        url: null,
        remoteIp: null,
        nodeId: 'test',
        traceId: null,
      },
      ...(isFailure && { error: failure }),
      ...more,
    };
    const results = await store.settle([settlement]);
    observer.settled([settlement], results);
    return settled(results[0]!);
  };
  return {
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    queueChanged: () => undefined,
    queueDeleted: () => undefined,
    waitingClaims: () => 0,
    breakersOf: () => Promise.resolve({ phase: 'closed', handlers: [] }),
    hasNoWorker: () => Promise.resolve(false),
    waitingFor: (_task, queue) => Promise.resolve(queue.paused ? 'paused' : 'dispatch'),
    knownQueue: () => undefined,
    queueOfLease: () => undefined,
    claim: () => Promise.resolve([]),
    handBack: () => Promise.resolve(),
    abandon: () => Promise.resolve(),
    workers: () => Promise.resolve([]),
    onPulledLeaseEnded: () => () => undefined,
    settleAll: (_queue, reports) =>
      Promise.all(
        reports.map(({ id, token, outcome: _outcome, ...more }) =>
          settle(id, token, { kind: 'succeeded' }, more),
        ),
      ),
    waitingForAll: (tasks, queue) => {
      const pending = tasks.filter(({ status }) => status === 'PENDING');
      const reason = queue.paused ? 'paused' : 'dispatch';
      return Promise.resolve(new Map(pending.map(({ id }) => [id, reason])));
    },
    cancelled: () => undefined,
    stepsRecorded: () => undefined,
    fail: (id, token, { retry = true }) =>
      settle(
        id,
        token,
        retry ? { kind: 'retry', dueAt: Date.now() } : { kind: 'dead', reason: 'PERMANENT' },
      ),
    extend: async (id, token, extendMs, reported) => {
      const now = Date.now();
      const expiresAt = now + extendMs;
      const progress = reported && { ...reported, at: now };
      const change = { id, token, expiresAt, isAsync: true, now, progress };
      const outcome = await store.extendLease(change);
      return outcome === 'not_found' ? 'lease_lost' : outcome;
    },
    probe: () =>
      Promise.resolve({
        delivered: true,
        http_status: 204,
        duration_ms: 1,
        error_type: null,
        message: null,
      }),
  };
}

function settled(result: SettleResult) {
  if (result.kind === 'too_many_steps' || result.kind === 'steps_too_large') return result.kind;
  return result.kind === 'lease_lost' ? 'lease_lost' : result.task;
}
