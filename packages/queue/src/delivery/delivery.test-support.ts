import type { Clock } from '@millrace/kit/clock';
import { createMetrics, type Metrics } from '@millrace/kit/metrics';
import type { Outbound, OutboundOutcome, OutboundRequest } from '@millrace/kit/outbound';
import { simulate, type Simulation } from '@millrace/kit/simulation';
import type { Tracer } from '@millrace/kit/tracing';
import type { Queue, QueueConfig } from '../core/queue.js';
import type { WholeTask } from '../core/task.js';
import { MemoryStore } from '../../test/support/memory-store/index.js';
import type { NewTask, TaskStore } from '../storage/port/task-store.js';
import { History, TaskObserver } from '../background/index.js';
import { createDelivery, type Delivery, type DeliveryOptions } from './index.js';

type Parts<T> = { [Key in keyof T]?: T[Key] extends object ? Partial<T[Key]> : T[Key] };

/** The default config of a queue, with changes; a test compares it with the contract's. */
export function sampleConfig(parts: Parts<QueueConfig> = {}): QueueConfig {
  const defaults: QueueConfig = {
    description: '',
    callback: {
      url: 'https://handlers.example.org/run?key=1',
      protocol: 'http',
      timeout_ms: 30_000,
      connect_timeout_ms: 5_000,
      async_timeout_ms: 3_600_000,
      auth: { type: 'none' },
      signing: null,
      keep_result: false,
    },
    retry: {
      max_attempts: 15,
      initial_backoff_ms: 1_000,
      multiplier: 2,
      max_backoff_ms: 3_600_000,
      retry_statuses: [],
      dead_statuses: [],
    },
    limits: {
      max_payload_bytes: 1_048_576,
      max_in_flight: 64,
      max_in_flight_per_group: 0,
      dispatch_per_second: 0,
      submit_per_second: 0,
      max_pending: 0,
      max_steps: 1_000,
    },
    lease: { grace_ms: 15_000 },
    retention: { succeeded_ms: 86_400_000, dead_ms: 0 },
    circuit_breaker: {
      enabled: true,
      failure_ratio: 0.7,
      min_requests: 10,
      window_ms: 30_000,
      open_ms: 30_000,
    },
    ordering: { mode: 'none' },
  };
  return {
    description: defaults.description,
    callback: { ...defaults.callback, ...parts.callback },
    retry: { ...defaults.retry, ...parts.retry },
    limits: { ...defaults.limits, ...parts.limits },
    lease: { ...defaults.lease, ...parts.lease },
    retention: { ...defaults.retention, ...parts.retention },
    circuit_breaker: { ...defaults.circuit_breaker, ...parts.circuit_breaker },
    ordering: { ...defaults.ordering, ...parts.ordering },
  } as QueueConfig;
}

export function sampleQueue(parts: Parts<QueueConfig> = {}, name = 'mail'): Queue {
  const config = sampleConfig(parts);
  const incarnation = 'first';
  return { name, config, paused: false, version: 1, incarnation, createdAt: 0, updatedAt: 0 };
}

/** What a handler answers. */
export function answer(
  status: number,
  headers: Record<string, string> = {},
  body = '',
): OutboundOutcome {
  const bytes = new TextEncoder().encode(body);
  return {
    ok: true,
    status,
    headers,
    body: bytes,
    truncated: false,
    remoteIp: '203.0.113.7',
    durationMs: 5,
  };
}

export type Handler = (request: OutboundRequest) => OutboundOutcome | Promise<OutboundOutcome>;

/** Handlers in virtual time: they obey the time-out and the signal as the real thing does. */
export class FakeOutbound implements Outbound {
  readonly requests: OutboundRequest[] = [];
  handler: Handler = () => answer(200);

  constructor(private readonly world: Pick<Simulation, 'clock'>) {}

  request(request: OutboundRequest): Promise<OutboundOutcome> {
    this.requests.push(request);
    const { clock } = this.world;
    const startedAt = clock.monotonic();
    return new Promise((resolve) => {
      const end = (outcome: OutboundOutcome) => {
        timer.cancel();
        resolve({ ...outcome, durationMs: clock.monotonic() - startedAt });
      };
      const fail = (errorType: 'TIMEOUT' | 'ABORTED') =>
        end({ ok: false, errorType, message: errorType, durationMs: 0 });
      const timer = clock.after(request.timeoutMs ?? 30_000, () => fail('TIMEOUT'));
      request.signal?.addEventListener('abort', () => fail('ABORTED'));
      void Promise.resolve(this.handler(request)).then(end);
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export interface Scene {
  world: Simulation;
  store: MemoryStore;
  outbound: FakeOutbound;
  metrics: Metrics;
  delivery: Delivery;
  putQueue(parts?: Parts<QueueConfig>, name?: string): Promise<Queue>;
  submit(task?: Partial<NewTask>): Promise<string>;
  task(id: string): Promise<WholeTask>;
}

/** Counts what happens to the tasks of a store; with a tracer, records their spans too. */
export function newObserver(store: TaskStore, clock: Clock, tracer?: Tracer): TaskObserver {
  const history = new History({ store, clock, instance: 'test' });
  return new TaskObserver({ history, clock, tracer });
}

/** A store, a handler and a delivery that has started, in virtual time. */
export async function newScene(
  options: Partial<DeliveryOptions> = {},
  wrap: (store: MemoryStore) => TaskStore = (store) => store,
): Promise<Scene> {
  const world = simulate(1);
  const store = new MemoryStore();
  const outbound = new FakeOutbound(world);
  const metrics = createMetrics('queue');
  metrics.close();
  const { clock, random, log } = world;
  const delivery = createDelivery({
    store: wrap(store),
    observer: newObserver(store, clock),
    clock,
    random,
    log,
    outbound,
    metrics,
    findSecret: () => undefined,
    isAllowed: () => true,
    nodeId: 'node-1',
    ...options,
  });
  const scene: Scene = {
    world,
    store,
    outbound,
    metrics,
    delivery,
    async putQueue(parts = {}, name = 'mail') {
      const config = sampleConfig(parts);
      const put = await store.putQueue({ queue: name, config, now: clock.now(), by: 'test' });
      return put.queue!;
    },
    async submit(task = {}) {
      const now = clock.now();
      const id = task.id ?? random.ulid(now);
      const [result] = await store.insertTasks([{ ...sampleTask(id, now), ...task }], now);
      if (result?.kind !== 'stored') throw new Error(`the task was not stored: ${result?.kind}`);
      return id;
    },
    async task(id) {
      const found = await store.getTask(id);
      if (!found || !('attempts' in found)) throw new Error(`there is no task ${id}`);
      return found;
    },
  };
  await world.complete(delivery.start());
  return scene;
}

export function sampleTask(id: string, now: number): NewTask {
  return {
    id,
    queue: 'mail',
    handlerRef: 'mail.send',
    payload: new TextEncoder().encode('hello'),
    payloadContentType: 'text/plain',
    headers: {},
    priority: 4,
    groupKey: null,
    dueAt: now,
    expiresAt: null,
    submittedBy: 'tester',
    maxPending: 0,
  };
}
