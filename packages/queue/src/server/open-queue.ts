import { openApiDocument } from '@millrace/contract/documents';
import type { CommitTarget, Database } from '@millrace/engine';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { schemasOf, type DocumentSchemas } from '@millrace/kit/http';
import { silentLog, type Log } from '@millrace/kit/log';
import { createMetrics } from '@millrace/kit/metrics';
import { parseAllowlist } from '@millrace/kit/outbound';
import { systemRandom } from '@millrace/kit/random';
import { UndoList } from '@millrace/kit/undo-list';
import {
  type Duration,
  durationMs,
  inCallNames,
  Queue,
  type QueueConfigInput,
  queuesOf,
  type QueueTransport,
  type SubmitOptions,
  submitRequestNow,
  type Tasks,
  type TaskTypes,
  ValidationError,
  type Worker,
} from '@millrace/worker';
import { Background, History, TaskObserver } from '../background/index.js';
import { isClaimed } from '../core/outcome.js';
import type { Queue as StoredQueue } from '../core/queue.js';
import { abandoned, createDelivery } from '../delivery/index.js';
import { bodyChecks } from '../operations/base/bodies.js';
import { type QueueContext, queueNotFound, TurnsByKey } from '../operations/base/context.js';
import { Cursors } from '../operations/base/cursors.js';
import { SubmitLimits } from '../operations/base/limits.js';
import { fail } from '../operations/base/refusal.js';
import { Readiness } from '../operations/base/readiness.js';
import { TaskWaits } from '../operations/base/task-waits.js';
import { putQueueConfig } from '../operations/queues.js';
import { newTask, queueFull } from '../operations/submit.js';
import { EmbeddedStore } from '../storage/embedded/embedded-store.js';
import { openEmbeddedStore, shareDatabase } from '../storage/embedded/open.js';
import { openStore } from '../storage/open-store.js';
import type { NewTask, Settlement, TaskStore } from '../storage/port/task-store.js';
import { identityFiles } from './credentials-files.js';
import { asClient, caller, clientError, inProcess } from './in-process.js';
import { ManualClock } from './manual-clock.js';

interface Place {
  /** Directory of the store. Only one process can have it open. */
  data: string;
  /** Keeps everything in memory: for tests. */
  memory: true;
  /** Stores tasks beside the records of an open database, which you close yourself. */
  database: Database;
}

type OneOf<Options> = {
  [Name in keyof Options]: Pick<Options, Name> & {
    [Other in Exclude<keyof Options, Name>]?: undefined;
  };
}[keyof Options];

export type OpenQueueOptions = OneOf<Place> & {
  /** `manual`: time passes by `advance` alone. */
  clock?: 'manual';
  /** True: a queue that is named for the first time is created with the defaults. */
  autoCreate?: boolean;
  /** Where to log; nowhere if absent. */
  log?: Log;
  /** False: refuse data of an older version instead of backing it up and upgrading it. */
  upgrade?: boolean;
};

/** What runs in this process, for `OpenQueue`. */
interface Running {
  context: QueueContext;
  clock: Clock;
}

/** Nothing happened for this long: what is due cannot run here. */
const stuckMs = 100;
const maxThrown = 100;

/** A queue in this process: the same as on a server, and the store behind it. */
export class OpenQueue<Types extends TaskTypes> extends Queue<Types> {
  readonly #thrown: unknown[] = [];

  constructor(
    transport: QueueTransport,
    tasks: Tasks<Types>,
    private readonly inside: Running,
  ) {
    super(transport, tasks);
  }

  /** Creates a pull queue, or replaces its config. */
  async createQueue(name: string, config: QueueConfigInput = {}): Promise<void> {
    await this.configure(name, config);
  }

  protected override started(worker: Worker): void {
    worker.on('failed', (_, error) => {
      if (this.#thrown.length < maxThrown) this.#thrown.push(error);
    });
    super.started(worker);
  }

  /**
   * Submits a task in a job of `database.transact`: it is stored with the records that the job writes,
   * or not at all. The queue must share the database: `openQueue({ database })`.
   */
  submitIn<Ref extends keyof Types & string>(
    tx: Pick<CommitTarget, 'rows'>,
    ref: Ref,
    payload: Types[Ref]['input'],
    options: SubmitOptions = {},
  ): string {
    const { context } = this.inside;
    const { store, observer, clock, random, checks } = context;
    if (!(store instanceof EmbeddedStore) || !store.isShared) {
      throw new ValidationError('submitIn needs a queue that shares the database: { database }.');
    }
    const { queue: name, request } = submitRequestNow(this.tasks, { ref, payload, options });
    const { payload: bytes, ...body } = request;
    const now = clock.now();
    let task: NewTask | undefined;
    let found: StoredQueue | undefined;
    const newTaskIn = (queue: StoredQueue) => {
      found = queue;
      const by = caller.principal;
      const newId = () => random.ulid(now);
      task = newTask(checks.task, body, { queue, now, by, newId, payload: bytes });
      return { task, now };
    };
    try {
      const result = store.insertIn(tx, name, newTaskIn, (of, stored) =>
        observer.submitted([of], [stored], now),
      );
      if (result.kind === 'queue_not_found') throw queueNotFound(name);
      if (result.kind === 'queue_full') throw queueFull(found!);
      return 'task' in result ? result.task.id : task!.id;
    } catch (error) {
      throw error instanceof Refusal ? inCallNames(clientError(error), body) : error;
    }
  }

  /** Runs everything that is due, and what follows from it, until nothing is left to do. */
  async drain({ throwErrors = false }: { throwErrors?: boolean } = {}): Promise<void> {
    await this.#idle();
    const thrown = this.#thrown.splice(0);
    if (!throwErrors || thrown.length === 0) return;
    if (thrown.length === 1) throw thrown[0];
    throw new AggregateError(thrown, thrown.map(String).join('; '));
  }

  /** Lets time pass: `advance('2 days')`. What falls due on the way runs, in its order. */
  async advance(duration: Duration): Promise<void> {
    const { clock } = this.inside;
    if (!(clock instanceof ManualClock)) {
      throw new ValidationError("advance needs openQueue({ ..., clock: 'manual' }).");
    }
    const end = clock.now() + durationMs(duration);
    await this.#idle();
    while (clock.now() < end) {
      clock.set(Math.min(end, await this.#nextEventAt()));
      await this.#idle();
    }
  }

  /** When the next task or schedule is due. */
  async #nextEventAt(): Promise<number> {
    const { store, clock } = this.inside.context;
    const { dueByQueue, upkeepAt = Infinity } = await store.nextEventAt();
    const schedules = await store.listRows({ table: 'schedule' });
    const runs = schedules.map(({ value }) => (value as { nextRunAt: number | null }).nextRunAt);
    const times = [...dueByQueue.values(), upkeepAt, ...runs.map((at) => at ?? Infinity)];
    return Math.min(...times.filter((at) => at > clock.now()), Infinity);
  }

  /** Resolves when no worker of this process can do anything now. */
  async #idle(): Promise<void> {
    let last = '';
    let changedAt = systemClock.monotonic();
    for (;;) {
      const state = await this.#state();
      if (state === '') return;
      const now = systemClock.monotonic();
      if (state !== last) changedAt = now;
      const isRunning = Array.from(this.workers).some(({ running }) => running > 0);
      if (!isRunning && now - changedAt > stuckMs) return;
      last = state;
      await systemClock.sleep(1);
    }
  }

  /** What is left to do, as text to compare; empty: nothing. */
  async #state(): Promise<string> {
    const { store, clock } = this.inside.context;
    // Events of the store and continuations of the handlers come first.
    await new Promise((resolve) => setImmediate(resolve));
    const { dueByQueue } = await store.nextEventAt();
    const schedules = await store.listRows({ table: 'schedule' });
    const isLate = schedules.some(({ value }) => {
      const { nextRunAt } = value as { nextRunAt: number | null };
      return nextRunAt !== null && nextRunAt <= clock.now();
    });
    const left: unknown[] = isLate ? ['schedule'] : [];
    for (const queue of new Set(Array.from(this.workers).flatMap((worker) => worker.queues))) {
      const { pending, inFlight } = await store.counts(queue);
      const isDue = (dueByQueue.get(queue) ?? Infinity) <= clock.now();
      if (isDue || inFlight > 0) left.push([queue, pending, inFlight]);
    }
    return left.length === 0 ? '' : JSON.stringify(left);
  }
}

/** A server checks the path of a request by the same pattern. */
const queueNames = /^[a-z0-9][a-z0-9._-]{0,127}$/;

/** Opens a queue in this process and without a server. */
export async function openQueue<Types extends TaskTypes>(
  options: OpenQueueOptions,
  tasks: Tasks<Types>,
): Promise<OpenQueue<Types>> {
  checkOptions(options);
  const undo = new UndoList();
  try {
    const schemas = schemasOf(openApiDocument('queue'));
    const clock = options.clock === 'manual' ? new ManualClock() : systemClock;
    const context = await openContext(options, clock, schemas, undo);
    const createQueues = async (names: readonly string[]) => {
      for (const name of names) await createQueue(context, name);
    };
    await asClient(() => createQueues(queuesOf(tasks)));
    const { autoCreate = false } = options;
    const close = () => undo.run();
    const isManual = clock !== systemClock;
    const transport = inProcess({ context, schemas, createQueues, autoCreate, isManual, close });
    return new OpenQueue(transport, tasks, { context, clock });
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

interface OpenedStore {
  store: TaskStore;
  identity: { nodeId: string; cursorKey: Uint8Array };
}

const optionNames: readonly string[] = [
  'data',
  'memory',
  'database',
  'clock',
  'autoCreate',
  'log',
  'upgrade',
] satisfies (keyof OpenQueueOptions)[];

/** Options that a program without types may have misspelt, or two places at once. */
function checkOptions(options: OpenQueueOptions | undefined | null): void {
  if (typeof options !== 'object' || options === null) {
    throw new ValidationError("openQueue takes options, such as { data: './data' }.");
  }
  const unknown = Object.keys(options).find((name) => !optionNames.includes(name));
  if (unknown !== undefined) {
    const names = optionNames.join(', ');
    throw new ValidationError(`${unknown} is not an option of openQueue; use ${names}.`);
  }
  const { data, memory, database, clock } = options;
  if (data !== undefined && typeof data !== 'string') {
    throw new ValidationError('data is the path of a folder.');
  }
  if ([data, memory || undefined, database].filter((place) => place !== undefined).length !== 1) {
    throw new ValidationError(
      'Say where the tasks are, once: { data }, { memory: true } or { database }.',
    );
  }
  if (clock !== undefined && clock !== 'manual') {
    throw new ValidationError("clock is 'manual', or left out for the time of the system.");
  }
}

/** The store, and who uses it. */
async function openTasks({
  data,
  memory,
  database,
  upgrade,
  log = silentLog,
}: OpenQueueOptions): Promise<OpenedStore> {
  // The engine waits for its disk, whatever time the tasks have.
  const world = { clock: systemClock, random: systemRandom, log };
  const identity = () => ({
    nodeId: world.random.ulid(world.clock.now()),
    cursorKey: world.random.bytes(32),
  });
  if (database) return { store: await shareDatabase(database, world), identity: identity() };
  if (memory) return { store: await openEmbeddedStore(':memory:', world), identity: identity() };
  const store = await openStore('embedded', { ...world, dataDirectory: data, upgrade });
  return { store, identity: identityFiles(data, world) };
}

/** Tasks that a crashed process was running are due again: nobody else can run them. */
async function releaseTasks({ store, clock, random, observer }: Released): Promise<void> {
  const horizon = clock.now() + maxLeaseMs;
  for (;;) {
    const now = clock.now();
    const held = await store.endedLeases({ now: horizon, limit: releasedPerStep });
    const settlements: Settlement[] = [];
    for (const task of held.filter(isClaimed)) {
      const queue = await store.getQueue(task.queue);
      if (queue?.config.callback.protocol !== 'pull') continue;
      settlements.push(abandoned(task, queue, now, random.next()));
    }
    if (settlements.length === 0) return;
    observer.settled(settlements, await store.settle(settlements));
  }
}

type Released = Pick<QueueContext, 'store' | 'clock' | 'random' | 'observer'>;
const maxLeaseMs = 366 * 86_400_000;
const releasedPerStep = 500;

/** The operations with everything they need, but no listener. */
async function openContext(
  options: OpenQueueOptions,
  clock: Clock,
  schemas: DocumentSchemas,
  undo: UndoList,
): Promise<QueueContext> {
  const { log = silentLog } = options;
  const world = { clock, random: systemRandom, log };
  const metrics = createMetrics('queue');
  undo.add(() => metrics.close());
  const { store, identity } = await openTasks(options);
  const { nodeId, cursorKey } = identity;
  undo.add(() => store.close());
  const instance = world.random.ulid(world.clock.now());
  const history = new History({ store, clock: world.clock, instance });
  const observer = new TaskObserver({ history, clock: world.clock });
  await releaseTasks({ ...world, store, observer });
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
