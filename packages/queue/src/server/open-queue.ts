import { openApiDocument } from '@millrace/contract/documents';
import type { QueueSchema } from '@millrace/contract/queue';
import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { DocumentSchemas } from '@millrace/kit/http';
import { silentLog, type Log } from '@millrace/kit/log';
import { createMetrics } from '@millrace/kit/metrics';
import { parseAllowlist } from '@millrace/kit/outbound';
import { systemRandom } from '@millrace/kit/random';
import { Grants } from '@millrace/kit/tokens';
import { UndoList } from '@millrace/kit/undo-list';
import {
  startWorker,
  taskQueue,
  type QueueTransport,
  type TaskHandlers,
  type TaskQueue,
  type Tasks,
  type TaskTypes,
  type Worker,
  type WorkerOptions,
} from '@millrace/worker';
import { Background, History, TaskObserver } from '../background/index.js';
import { createDelivery } from '../delivery/index.js';
import { bodyChecks } from '../operations/base/bodies.js';
import { claimTasks } from '../operations/claim-tasks.js';
import {
  type Principal,
  type QueueContext,
  roleLevels,
  TurnsByKey,
} from '../operations/base/context.js';
import { Cursors } from '../operations/base/cursors.js';
import { extendTask, settleTasks } from '../operations/settle.js';
import { getTask } from '../operations/tasks.js';
import { SubmitLimits } from '../operations/base/limits.js';
import { putQueueConfig } from '../operations/queues.js';
import { fail } from '../operations/base/refusal.js';
import { Readiness } from '../operations/base/readiness.js';
import { TaskWaits } from '../operations/base/task-waits.js';
import { submitTask } from '../operations/submit.js';
import { openStore } from '../storage/open-store.js';
import { identityFiles } from './credentials-files.js';

export interface OpenQueueOptions {
  /** Directory of the store. Only one process can have it open. */
  data: string;
  /** Where to log; nowhere if absent. */
  log?: Log;
  /** False: refuse data of an older version instead of backing it up and upgrading it. */
  upgrade?: boolean;
}

type ConfigInput = QueueSchema<'QueueConfigInput'>;

/** A queue in this process: the client, its workers and the store behind them. */
export interface OpenQueue<Types extends TaskTypes> extends TaskQueue<Types> {
  /** Starts a worker. A queue that does not exist is created with the defaults. */
  createWorker(options: WorkerOptions, handlers: TaskHandlers<Types>): Worker;
  /** Creates a pull queue, or replaces its config. */
  createQueue(name: string, config?: Partial<ConfigInput>): Promise<void>;
  /** Stops the workers and closes the store. */
  close(): Promise<void>;
}

/** A server checks the path of a request by the same pattern. */
const queueNames = /^[a-z0-9][a-z0-9._-]{0,127}$/;

const caller: Principal = {
  id: 'in-process',
  principal: 'in-process',
  grants: new Grants(roleLevels, [{ queue: '*', role: 'admin' }]),
  expiresAt: undefined,
};

/** Opens a queue on the embedded store, in this process and without a server. */
export async function openQueue<Types extends TaskTypes>(
  options: OpenQueueOptions,
  tasks: Tasks<Types>,
): Promise<OpenQueue<Types>> {
  const undo = new UndoList();
  try {
    const context = await openContext(options, undo);
    const createQueue = async (name: string, config: Partial<ConfigInput> = {}) => {
      if (!queueNames.test(name)) {
        const rule = 'use 1 to 128 of a-z 0-9 . _ - that begin with a letter or digit';
        throw fail('INVALID_CONFIG', `${JSON.stringify(name)} cannot name a queue; ${rule}.`);
      }
      const body = { ...config, callback: { ...config.callback, protocol: 'pull' } };
      await putQueueConfig(context, caller, { queue: name, body });
    };
    const transport = inProcess(context, createQueue);
    const workers = new Set<Worker>();
    let closing: Promise<void> | undefined;
    return {
      ...taskQueue(transport, tasks),
      createQueue,
      createWorker: (worker, handlers) => {
        const started = startWorker(transport, worker, tasks, handlers);
        workers.add(started);
        return started;
      },
      close: () => {
        closing ??= Promise.all(Array.from(workers, (worker) => worker.stop())).then(() =>
          undo.run(),
        );
        return closing;
      },
    };
  } catch (error) {
    await undo.run();
    throw error;
  }
}

/** The operations with everything they need, but no listener. */
async function openContext(
  { data, log = silentLog, upgrade }: OpenQueueOptions,
  undo: UndoList,
): Promise<QueueContext> {
  const world = { clock: systemClock, random: systemRandom, log };
  const metrics = createMetrics('queue');
  undo.add(() => metrics.close());
  const store = await openStore('embedded', { ...world, dataDirectory: data, upgrade });
  undo.add(() => store.close());
  const instance = world.random.ulid(world.clock.now());
  const history = new History({ store, clock: world.clock, instance });
  const observer = new TaskObserver({ history, clock: world.clock });
  const { nodeId, cursorKey } = identityFiles(data, world);
  const allowlist = parseAllowlist([]);
  const delivery = createDelivery({
    ...world,
    store,
    observer,
    nodeId,
    metrics,
    // Queues with callbacks, of a server on the same directory, are held.
    outbound: { request: () => Promise.reject(new Error('No callbacks in process')), close },
    findSecret: () => undefined,
    isAllowed: () => false,
  });
  await delivery.start();
  undo.add(() => delivery.stop({ timeoutMs: 0 }));
  const background = new Background({ ...world, store, instance, history, observer });
  background.start();
  undo.add(() => background.storeHistory());
  undo.add(() => background.stop());
  // Nothing sheds load in process.
  const load = { enter: () => undefined, leave: () => undefined };
  const waits = new TaskWaits({ ...world, store, load });
  undo.add(() => waits.close());
  return {
    ...world,
    store,
    delivery,
    background,
    history,
    observer,
    allowlist,
    findSecret: () => undefined,
    secretsFault: () => undefined,
    cursors: new Cursors(cursorKey, world.clock),
    submitLimits: new SubmitLimits(world.clock, 0),
    checks: bodyChecks(new DocumentSchemas(openApiDocument('queue'))),
    readiness: new Readiness({ ...world, probe: () => store.probe() }),
    waits,
    maxWaitingClaims: Infinity,
    scheduleLimits: { maxCount: Infinity, maxBytes: Infinity },
    scheduleWrites: new TurnsByKey(),
  };
}

const close = () => Promise.resolve();

function inProcess(
  context: QueueContext,
  createQueue: (name: string) => Promise<void>,
): QueueTransport {
  /** Creates the queue if it does not exist. */
  const inQueue = async <Result>(queue: string, run: () => Promise<Result>): Promise<Result> => {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'QUEUE_NOT_FOUND') throw error;
      await createQueue(queue);
      return run();
    }
  };
  return {
    submit: (queue, body) =>
      inQueue(queue, async () => (await submitTask(context, caller, { queue, body })).result),
    getTask: (id, waitMs) => getTask(context, caller, { id, waitMs }),
    claim: async (queue, body, signal) => {
      const request = { queue, body, remoteIp: null, signal };
      return (await inQueue(queue, () => claimTasks(context, caller, request))).tasks;
    },
    settle: (queue, items) => settleTasks(context, { queue, body: { items } }),
    extend: (id, leaseToken, body) => extendTask(context, caller, { id, leaseToken, body }),
  };
}
