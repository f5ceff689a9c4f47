import { openApiDocument } from '@millrace/contract/documents';
import { DocumentSchemas, drainHttp, type HttpApp } from '@millrace/kit/http';
import { createMetrics } from '@millrace/kit/metrics';
import { callbackGuard, parseAllowlist } from '@millrace/kit/outbound';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import { UndoList } from '@millrace/kit/undo-list';
import type { World } from '@millrace/kit/world';
import { createOutbound } from '@millrace/wire/http1';
import type { Delivery, DeliveryOptions } from '../delivery/index.js';
import { bodyChecks } from '../operations/checks.js';
import type { TaskStore } from '../storage/task-store.js';
import { queueApp } from './app.js';
import type { QueueSettings } from './config.js';
import type { DeliveryControl, QueueContext } from '../operations/context.js';
import { openSecrets, openTokens } from './credentials-files.js';
import { Cursors } from '../operations/cursors.js';
import { metricsApp, openDoors, type ListenerAddress } from './doors.js';
import { Load } from '../operations/limits/load.js';
import { SubmitLimits } from '../operations/limits/submit-limits.js';
import { measuredQueues } from './measure.js';
import { ownFiles } from './own-files.js';
import { Readiness } from '../operations/readiness.js';

/** To one origin. */
const mostConnections = 10_000;

export interface RunningQueue {
  readonly listeners: readonly ListenerAddress[];
  /** Settles when the server ends without having been asked to; rejects with the reason. */
  readonly ended: Promise<void>;
  /** Hands running tasks back, lets requests under way finish, closes the store. Safe to repeat. */
  stop(): Promise<void>;
}

/** What delivers the tasks while the server runs. */
export type RunningDelivery = DeliveryControl & Pick<Delivery, 'start' | 'stop'>;

/** What the server stands on; tests put other things in their place. */
export interface Foundations {
  openStore(settings: QueueSettings, world: World): Promise<TaskStore>;
  createDelivery(options: DeliveryOptions): RunningDelivery;
  /** Hears of every answer that the contract does not describe. */
  onUndocumentedAnswer?: ((difference: string) => void) | undefined;
}

/** Opens the store and serves it: the one place where everything is put together. */
export async function startServer(
  settings: QueueSettings,
  world: World,
  foundations: Foundations,
): Promise<RunningQueue> {
  const undo = new UndoList();
  try {
    const house = await openHouse(settings, world, foundations, undo);
    const { api, metrics } = buildApps(settings, world, foundations, house);
    const doors = await openDoors(settings, { api, metrics }, undo);
    await house.delivery.start();
    const stop = () =>
      shutDown({ ...house, apps: [api, metrics], drainMs: settings.drain_timeout_ms, world, undo });
    let stopping: Promise<void> | undefined;
    return {
      listeners: doors.addresses,
      ended: doors.failed,
      stop: () => (stopping ??= stop()),
    };
  } catch (error) {
    await undo.run();
    throw error;
  }
}

/** Everything behind the doors. */
type House = Awaited<ReturnType<typeof openHouse>>;

async function openHouse(
  settings: QueueSettings,
  world: World,
  foundations: Foundations,
  undo: UndoList,
) {
  const allowlist = parseAllowlist(settings.callback_allowlist);
  const metrics = createMetrics('queue');
  undo.add(() => metrics.close());
  const tokens = openTokens(settings, world, metrics);
  undo.add(() => tokens.close());
  const { nodeId, cursorKey: ownKey } = ownFiles(settings.data, world);
  const store = await foundations.openStore(settings, world);
  undo.add(() => store.close());
  const secrets = openSecrets(settings, world, metrics, () => {
    // A queue that was held for want of a secret may go on.
    void store.listQueues().then(
      (queues) => queues.forEach(({ name }) => delivery.queueChanged(name)),
      (error: unknown) => world.log.warn({ err: error }, 'the queues did not hear of new secrets'),
    );
  });
  undo.add(() => secrets.close());
  // A queue says itself how many callbacks run at once; none should wait in line for a connection.
  const limits = { connectionsPerLane: mostConnections };
  const outbound = createOutbound({ guard: callbackGuard(allowlist), clock: world.clock, limits });
  undo.add(() => outbound.close());
  const delivery = foundations.createDelivery({
    ...world,
    store,
    outbound,
    findSecret: (name, queue) => secrets.current.find(name, queue),
    isAllowed: (url) => allowlist.match(url).allowed,
    nodeId,
    metrics,
  });
  const readiness = new Readiness({ ...world, probe: () => store.probe() });
  const cursorKey = store.capabilities.cursorKey ?? ownKey;
  return { allowlist, metrics, tokens, secrets, store, delivery, readiness, cursorKey };
}

function buildApps(
  settings: QueueSettings,
  world: World,
  { onUndocumentedAnswer }: Foundations,
  house: House,
): { api: HttpApp; metrics: HttpApp } {
  const { allowlist, metrics, tokens, secrets, store, delivery, readiness, cursorKey } = house;
  const { clock, random, log } = world;
  const peerMemory = new PeerMemory(peerMemoryLimits(settings.max_peer_memory_bytes));
  const schemas = new DocumentSchemas(openApiDocument('queue'));
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
    findSecret: (name, queue) => secrets.current.find(name, queue),
    allowlist,
    cursors: new Cursors(cursorKey, clock),
    submitLimits: new SubmitLimits(clock, settings.principal_submit_per_second),
    checks: bodyChecks(schemas),
    readiness,
  };
  const api = queueApp({
    context,
    schemas,
    tokens,
    load,
    metrics,
    accessLog: settings.access_log,
    peerMemory,
    maxConnections: settings.max_connections,
    onUndocumentedAnswer,
  });
  const measured = measuredQueues({ metrics, store, load, clock, log });
  return {
    api,
    metrics: metricsApp(measured, world, { listen: settings.metrics_listen, peerMemory }),
  };
}

interface ShutDown {
  readiness: Readiness;
  delivery: RunningDelivery;
  apps: readonly HttpApp[];
  drainMs: number;
  world: World;
  undo: UndoList;
}

/** What comes after the deadline: time for callers to hear how their requests ended. */
const partingMs = 1_000;

/**
 * Ends the serving gently. The API stays open while running callbacks finish: handlers of long
 * work settle what they have, and whoever asks for readiness is told and not cut off.
 */
async function shutDown(parts: ShutDown): Promise<void> {
  const { readiness, delivery, apps, drainMs, world, undo } = parts;
  const { clock } = world;
  const endsAt = clock.monotonic() + drainMs;
  readiness.beginDrain();
  const ending = new UndoList();
  ending.add(() => undo.run());
  ending.add(async () => {
    const deadlineMs = Math.max(partingMs, endsAt - clock.monotonic());
    await Promise.all(apps.map((app) => drainHttp(app, { clock, deadlineMs })));
  });
  ending.add(() => delivery.stop({ timeoutMs: drainMs }));
  await ending.run();
}
