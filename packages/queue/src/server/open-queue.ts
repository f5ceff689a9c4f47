import { openApiDocument } from '@millrace/contract/documents';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { DocumentSchemas } from '@millrace/kit/http';
import { silentLog, type Log } from '@millrace/kit/log';
import { createMetrics } from '@millrace/kit/metrics';
import { parseAllowlist } from '@millrace/kit/outbound';
import { systemRandom } from '@millrace/kit/random';
import { UndoList } from '@millrace/kit/undo-list';
import {
  Queue,
  queuesOf,
  type QueueConfigInput,
  type Tasks,
  type TaskTypes,
} from '@millrace/worker';
import { Background, History, TaskObserver } from '../background/index.js';
import { createDelivery } from '../delivery/index.js';
import { bodyChecks } from '../operations/base/bodies.js';
import { type QueueContext, TurnsByKey } from '../operations/base/context.js';
import { Cursors } from '../operations/base/cursors.js';
import { SubmitLimits } from '../operations/base/limits.js';
import { putQueueConfig } from '../operations/queues.js';
import { fail } from '../operations/base/refusal.js';
import { Readiness } from '../operations/base/readiness.js';
import { TaskWaits } from '../operations/base/task-waits.js';
import { openStore } from '../storage/open-store.js';
import { identityFiles } from './credentials-files.js';
import { asClient, caller, inProcess } from './in-process.js';

export interface OpenQueueOptions {
  /** Directory of the store. Only one process can have it open. */
  data: string;
  /** True: a queue that is named for the first time is created with the defaults. */
  autoCreate?: boolean;
  /** Where to log; nowhere if absent. */
  log?: Log;
  /** False: refuse data of an older version instead of backing it up and upgrading it. */
  upgrade?: boolean;
}

/** A queue in this process: the same as on a server, and the store behind it. */
export class OpenQueue<Types extends TaskTypes> extends Queue<Types> {
  /** Creates a pull queue, or replaces its config. */
  async createQueue(name: string, config: QueueConfigInput = {}): Promise<void> {
    await this.configure(name, config);
  }
}

/** A server checks the path of a request by the same pattern. */
const queueNames = /^[a-z0-9][a-z0-9._-]{0,127}$/;

/** Opens a queue on the embedded store, in this process and without a server. */
export async function openQueue<Types extends TaskTypes>(
  options: OpenQueueOptions,
  tasks: Tasks<Types>,
): Promise<OpenQueue<Types>> {
  const undo = new UndoList();
  try {
    const schemas = new DocumentSchemas(openApiDocument('queue'));
    const context = await openContext(options, schemas, undo);
    const createQueues = async (names: readonly string[]) => {
      for (const name of names) await createQueue(context, name);
    };
    await asClient(() => createQueues(queuesOf(tasks)));
    const { autoCreate = false } = options;
    const close = () => undo.run();
    const transport = inProcess({ context, schemas, createQueues, autoCreate, close });
    return new OpenQueue(transport, tasks);
  } catch (error) {
    await undo.run();
    throw error;
  }
}

/** Creates a pull queue with the defaults, unless it exists. */
async function createQueue(context: QueueContext, name: string): Promise<void> {
  if (!queueNames.test(name)) {
    const rule = 'use 1 to 128 of a-z 0-9 . _ - that begin with a letter or digit';
    throw fail('INVALID_CONFIG', `${JSON.stringify(name)} cannot name a queue; ${rule}.`);
  }
  if (await context.store.getQueue(name)) return;
  await putQueueConfig(context, caller, { queue: name, body: { callback: { protocol: 'pull' } } });
}

/** The operations with everything they need, but no listener. */
async function openContext(
  { data, log = silentLog, upgrade }: OpenQueueOptions,
  schemas: DocumentSchemas,
  undo: UndoList,
): Promise<QueueContext> {
  const world = { clock: systemClock as Clock, random: systemRandom, log };
  const metrics = createMetrics('queue');
  undo.add(() => metrics.close());
  const store = await openStore('embedded', { ...world, dataDirectory: data, upgrade });
  undo.add(() => store.close());
  const instance = world.random.ulid(world.clock.now());
  const history = new History({ store, clock: world.clock, instance });
  const observer = new TaskObserver({ history, clock: world.clock });
  const { nodeId, cursorKey } = identityFiles(data, world);
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
    allowlist: parseAllowlist([]),
    findSecret: () => undefined,
    secretsFault: () => undefined,
    cursors: new Cursors(cursorKey, world.clock),
    submitLimits: new SubmitLimits(world.clock, 0),
    checks: bodyChecks(schemas),
    readiness: new Readiness({ ...world, probe: () => store.probe() }),
    waits,
    maxWaitingClaims: Infinity,
    scheduleLimits: { maxCount: Infinity, maxBytes: Infinity },
    scheduleWrites: new TurnsByKey(),
  };
}

const close = () => Promise.resolve();
