import type { Socket } from 'node:net';
import { openApiDocument } from '@millrace/contract/documents';
import { queueCodes } from '@millrace/contract/queue';
import { readTls, tlsOptions } from '@millrace/kit/config';
import { schemasOf, drainHttp, metricsApp, type HttpApp } from '@millrace/kit/http';
import { createMetrics } from '@millrace/kit/metrics';
import { callbackGuard } from '@millrace/kit/outbound';
import { ConnectionLimit, countDroppedConnections } from '@millrace/kit/connection-limit';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import { createOutbound } from '@millrace/wire/http1';
import { Background, History, TaskObserver } from '../background/index.js';
import { GrpcHandlerClient } from '../delivery/grpc-handlers.js';
import type { Delivery, DeliveryOptions } from '../delivery/index.js';
import { bodyChecks } from '../operations/base/bodies.js';
import type { TaskStore } from '../storage/port/task-store.js';
import { accessLogOf, queueApp } from './app.js';
import type { QueueSettings } from './config.js';
import { type DeliveryControl, type QueueContext, TurnsByKey } from '../operations/base/context.js';
import {
  followAllowlist,
  identityFiles,
  openSecrets,
  openTokens,
  type SettingsFile,
} from './credentials-files.js';
import { Cursors } from '../operations/base/cursors.js';
import { openListeners, type ListenerAddress } from './listeners.js';
import { Load, SubmitLimits } from '../operations/base/limits.js';
import { measuredQueues } from './measure.js';
import { GrpcServer } from './grpc-server.js';
import { Readiness } from '../operations/base/readiness.js';
import { TaskWaits } from '../operations/base/task-waits.js';

/** Per origin. */
const maxConnections = 10_000;

export interface RunningQueue {
  readonly listeners: readonly ListenerAddress[];
  /** Rejects with the reason when the server fails. */
  readonly ended: Promise<void>;
  /**
   * Graceful shutdown: hands running tasks back, finishes requests, closes the store. Idempotent.
   */
  stop(): Promise<void>;
}

/** Delivery as the server uses it. */
export type RunningDelivery = DeliveryControl & Pick<Delivery, 'start' | 'stop'>;

/** Dependencies of the server; tests replace them. */
export interface ServerDependencies {
  openStore(settings: QueueSettings, world: World): Promise<TaskStore>;
  createDelivery(options: DeliveryOptions): RunningDelivery;
  /** Reloaded for its allowlist when it changes. */
  settingsFile?: SettingsFile | undefined;
  /** Called for every response that the contract does not describe. */
  onUndocumentedResponse?: ((difference: string) => void) | undefined;
}

/** Opens the store and serves it. The composition root. */
export async function startServer(
  settings: QueueSettings,
  world: World,
  dependencies: ServerDependencies,
): Promise<RunningQueue> {
  const undo = new UndoList();
  try {
    const services = await openServices(settings, world, dependencies, undo);
    const { api, metrics, grpc, waits } = buildApps(settings, world, dependencies, services);
    const listeners = await openListeners(settings, { api, metrics, grpc }, undo);
    await services.delivery.start();
    services.background.start();
    const stop = () =>
      shutDown({
        ...services,
        waits,
        apps: [api, metrics],
        grpc,
        drainMs: settings.drain_timeout_ms,
        world,
        undo,
      });
    let stopping: Promise<void> | undefined;
    return {
      listeners: listeners.addresses,
      ended: listeners.failed,
      stop: () => (stopping ??= stop()),
    };
  } catch (error) {
    await undo.run();
    throw error;
  }
}

/** Everything behind the listeners. */
type Services = Awaited<ReturnType<typeof openServices>>;

async function openServices(
  settings: QueueSettings,
  world: World,
  dependencies: ServerDependencies,
  undo: UndoList,
) {
  const metrics = createMetrics('queue');
  undo.add(() => metrics.close());
  // A queue that was held for a missing secret or for its callback URL may resume.
  const reviewQueues = () => {
    void store.listQueues().then(
      (queues) => queues.forEach(({ name }) => delivery.queueChanged(name)),
      (error: unknown) => world.log.warn({ err: error }, 'failed to review queues'),
    );
  };
  const { settingsFile } = dependencies;
  const reloading = { metrics, onChange: reviewQueues };
  const allowlist = followAllowlist(settings, settingsFile, world, reloading);
  undo.add(() => allowlist.close());
  const tokens = openTokens(settings, world, metrics);
  undo.add(() => tokens.close());
  const { nodeId, cursorKey: ownKey } = identityFiles(settings.data, world);
  const store = await dependencies.openStore(settings, world);
  undo.add(() => store.close());
  const clock = store.capabilities.clock ?? world.clock;
  const instance = world.random.ulid(clock.now());
  const history = new History({ store, clock, instance });
  const observer = new TaskObserver({ history, clock, tracer: world.tracer });
  const secrets = openSecrets(settings, world, metrics, reviewQueues);
  undo.add(() => secrets.close());
  // `max_in_flight` of the queue limits callbacks; none should wait for a connection.
  const limits = { connectionsPerPool: maxConnections };
  const guard = callbackGuard(allowlist);
  const outbound = createOutbound({ guard, clock: world.clock, limits });
  undo.add(() => outbound.close());
  const grpcHandlers = new GrpcHandlerClient({ guard, clock: world.clock });
  undo.add(() => grpcHandlers.close());
  const delivery = dependencies.createDelivery({
    ...world,
    clock,
    store,
    observer,
    outbound,
    grpcHandlers,
    findSecret: (name, queue) => secrets.current.find(name, queue),
    isAllowed: (url) => allowlist.match(url).allowed,
    nodeId,
    metrics,
  });
  const background = new Background({ ...world, clock, store, instance, history, observer });
  const readiness = new Readiness({ ...world, probe: () => store.probe() });
  const cursorKey = store.capabilities.cursorKey ?? ownKey;
  return {
    allowlist,
    metrics,
    tokens,
    secrets,
    store,
    clock,
    delivery,
    background,
    history,
    observer,
    readiness,
    cursorKey,
  };
}

function buildApps(
  settings: QueueSettings,
  world: World,
  { onUndocumentedResponse }: ServerDependencies,
  services: Services,
): { api: HttpApp; metrics: HttpApp; grpc: GrpcServer; waits: TaskWaits } {
  const { allowlist, metrics, tokens, secrets, store, delivery, background } = services;
  const { clock, readiness, cursorKey, history, observer } = services;
  const { random, log } = world;
  const peerMemory = new PeerMemory(peerMemoryLimits(settings.max_peer_memory_bytes));
  const schemas = schemasOf(openApiDocument('queue'));
  const load = new Load({
    clock,
    log,
    maxInflight: settings.max_inflight,
    targetMs: settings.shed_target_ms,
  });
  const context: QueueContext = {
    store,
    clock,
    random,
    log,
    delivery,
    background,
    history,
    observer,
    findSecret: (name, queue) => secrets.current.find(name, queue),
    secretsFault: () => secrets.lastError,
    allowlist,
    cursors: new Cursors(cursorKey, clock),
    submitLimits: new SubmitLimits(clock, settings.principal_submit_per_second),
    checks: bodyChecks(schemas),
    readiness,
    waits: new TaskWaits({ store, clock, load }),
    maxWaitingClaims: settings.max_waiting_claims,
    scheduleLimits: {
      maxCount: settings.max_schedules,
      maxBytes: settings.max_schedule_bytes,
    },
    scheduleWrites: new TurnsByKey(),
  };
  const tls = readTls(settings);
  const { max_connections: maxConnections } = settings;
  const onDrop = countDroppedConnections(metrics);
  const api = queueApp({
    context,
    schemas,
    tokens,
    load,
    metrics,
    accessLog: settings.access_log,
    peerMemory,
    maxConnections,
    tls: tlsOptions(tls),
    onUndocumentedResponse,
  });
  const grpc = new GrpcServer({
    context,
    tokens,
    load,
    schemas,
    peerMemory,
    connections: new ConnectionLimit({ clock, log, listener: 'grpc', maxConnections, onDrop }),
    tls,
  });
  api.server.node.on('upgrade', (request, socket: Socket, head) => {
    grpc.upgrade(request, socket, head, (of, principal) => api.server.handOver(of, principal));
  });
  const measured = measuredQueues({ metrics, store, load, clock, log });
  return {
    api,
    grpc,
    waits: context.waits,
    metrics: metricsApp(measured, {
      world: { ...world, log: accessLogOf(world.log, 'off') },
      codes: queueCodes,
      host: settings.metrics_listen.host,
      peerMemory,
    }),
  };
}

interface ShutDown {
  readiness: Readiness;
  waits: TaskWaits;
  delivery: RunningDelivery;
  background: Background;
  apps: readonly HttpApp[];
  grpc: GrpcServer;
  drainMs: number;
  world: World;
  undo: UndoList;
}

/** Minimum time for open requests to receive their responses. */
const minDrainMs = 1_000;

/**
 * Graceful shutdown. The API stays open while callbacks finish, so that handlers can settle their
 * tasks and the readiness check can report draining.
 */
async function shutDown(parts: ShutDown): Promise<void> {
  const { readiness, waits, delivery, background, apps, grpc, drainMs, world, undo } = parts;
  const { clock } = world;
  const endsAt = clock.monotonic() + drainMs;
  readiness.beginDrain();
  waits.close();
  const ending = new UndoList();
  ending.add(() => undo.run());
  ending.add(() => background.storeHistory());
  ending.add(async () => {
    const deadlineMs = Math.max(minDrainMs, endsAt - clock.monotonic());
    const draining = apps.map((app) => drainHttp(app, { clock, deadlineMs }));
    await Promise.all([...draining, grpc.drain(clock, deadlineMs)]);
  });
  ending.add(() => delivery.stop({ timeoutMs: drainMs }));
  ending.add(() => background.stop());
  await ending.run();
}
