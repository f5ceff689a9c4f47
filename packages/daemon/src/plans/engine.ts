import type { Database } from '@millrace/engine';
import { openQueue } from '@millrace/queue';
import { ApiError, defineTasks, LeaseLost, PermanentError, RetryLater } from '@millrace/worker';
import { z } from 'zod';
import { Turns } from '../core/turns.js';
import { deleteBranch } from './branch-work.js';
import type { StoredPlan } from './definition.js';
import { TaskRun, type DroppedBranch, type RunTaskParts } from './run-task.js';

export interface PlanEngineParts extends Omit<
  RunTaskParts,
  'discardLater' | 'mergeTurns' | 'startTurns'
> {
  database: Database;
}

/** The queue in this process that the tasks of plans are a flow in. */
export interface PlanEngine {
  /** Repeating it changes nothing. */
  submit(plan: StoredPlan): Promise<void>;
  /** A signal to a task that has ended is ignored. */
  signal(plan: string, key: string, name: string, payload: object): Promise<void>;
  cancel(plan: string): Promise<void>;
  close(): Promise<void>;
}

const queueName = 'plans';
/** Losers of a race stay this long. */
const discardAfter = 7 * 86_400_000;
/** A handler waits for its agents, a large number runs at a time; the gates limit the agents. */
const concurrency = 1_000;
const leaseMs = 600_000;

const tasks = defineTasks({
  'plan.task': {
    payload: z.object({ plan: z.string(), key: z.string() }),
    queue: queueName,
    maxAttempts: 1_000,
  },
  'plan.discard': {
    payload: z.object({
      branches: z.array(z.object({ repo: z.string(), branch: z.string(), tip: z.string() })),
    }),
    queue: queueName,
  },
});

export async function openPlanEngine(given: PlanEngineParts): Promise<PlanEngine> {
  const { database, log, store } = given;
  const queue = await openQueue({ database, log }, tasks);
  // A kill of the daemon ends an attempt, and many of them are no reason to give up.
  await queue.createQueue(queueName, { retry: { maxAttempts: 1_000 } });
  const discardLater = async (branches: readonly DroppedBranch[], name: string) => {
    const options = { delayMs: discardAfter, uniqueKey: `discard:${name}` };
    await queue.submit('plan.discard', { branches: [...branches] }, options);
  };
  const turns = { mergeTurns: new Turns(), startTurns: new Turns() };
  const parts: RunTaskParts = { ...given, ...turns, discardLater };
  const worker = queue.createWorker(
    {
      queue: queueName,
      concurrency,
      leaseMs,
      name: 'plans',
      onError: (error) => log.warn({ err: error }, 'plan worker failed'),
    },
    {
      'plan.task': async ({ payload: { plan: id, key }, step, signal }) => {
        const plan = await store.find(id);
        if (plan?.status !== 'running') return;
        const run = new TaskRun(parts, { step, signal }, plan, await store.definition(id), key);
        await run.run().catch(async (error: unknown) => {
          const isPassing = error instanceof LeaseLost || error instanceof RetryLater;
          if (signal.aborted || isPassing || !(error instanceof PermanentError)) throw error;
          const result = error.message;
          await store.changeTask(id, key, () => ({ status: 'failed', result, waiting_for: null }));
          throw error;
        });
      },
      'plan.discard': async ({ payload: { branches } }) => {
        for (const branch of branches) await deleteBranch(parts.git, branch);
      },
    },
  );
  const idOf = async (plan: string, key: string) => (await store.taskIds(plan))[key]!;
  return {
    submit: async (plan) => {
      const ids = await store.taskIds(plan.id);
      const flow = queue.flow(plan.id);
      for (const { key, depends_on: after } of plan.tasks) {
        flow.task(key, 'plan.task', { plan: plan.id, key }, { id: ids[key]!, after });
      }
      await flow.submit();
    },
    signal: async (plan, key, name, payload) => {
      try {
        await queue.signal(await idOf(plan, key), name, payload, { id: name });
      } catch (error) {
        if (!(error instanceof ApiError && error.code === 'TASK_ENDED')) throw error;
      }
    },
    cancel: async (plan) => {
      await queue.cancel(Object.values(await store.taskIds(plan)), {
        reason: 'The plan is canceled',
      });
    },
    close: async () => {
      await worker.stop({ timeoutMs: 0 });
      await queue.close();
    },
  };
}
