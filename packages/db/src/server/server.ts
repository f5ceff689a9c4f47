import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { Calls, CallMetrics } from './calls/calls.js';
import { Health } from './grpc/health.js';
import { type Listeners, openListeners, type ListenerAddress } from './listeners/listeners.js';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { isLoopback, readTls } from '@millrace/kit/config';
import { createMetrics } from '@millrace/kit/metrics';
import { PeerMemory, peerMemoryLimits } from '@millrace/kit/peer-memory';
import type { World } from '@millrace/kit/world';
import { join } from 'node:path';
import { Database } from '@millrace/engine/api/database';
import { checkCollectionName } from '@millrace/engine/value/documents';
import { compileIndex, definitionOf, type DeclaredIndex } from '@millrace/engine/format/entries';
import { Authenticator, openAccess } from './access/access.js';
import type { DatabaseSettings } from './base/config.js';
import { Admission } from './limits/admission.js';
import { openCluster, type OpenedCluster } from './cluster/open-cluster.js';
import { nodeIdOf, Readiness, repeat, serverVersion } from './base/status.js';
import { measureDatabase } from './observe/database-metrics.js';
import { DatabaseHandle } from './replication/followers.js';
import { countNodeEvents, describeNode } from './replication/metrics.js';
import { Node, sealOf } from './replication/node.js';
import { SlowQueryLog } from './service/index-advice.js';
import { createService } from './service/service.js';
export type { ListenerAddress } from './listeners/listeners.js';

interface DrainParts {
  calls: Calls;
  health: Health;
  listeners: Listeners;
  clock: Clock;
  log: Log;
  deadlineMs: number;
  /** Runs when no other calls are in flight, before connections close. */
  beforeClose: () => Promise<void>;
}

/** Time after the deadline for callers to receive the status of their calls. */
const minCloseMs = 1_000;

/**
 * Graceful shutdown: health reports it first, new calls are refused, watches end and calls in
 * flight finish. Listeners stay open until then, so that callers receive a status. A call is
 * finished when its answer is queued; a caller that reads slowly has the rest of the time for it.
 */
async function drain(parts: DrainParts): Promise<void> {
  const { calls, health, listeners, clock, log, deadlineMs } = parts;
  const endsAt = clock.monotonic() + deadlineMs;
  health.stopServing();
  calls.beginDrain();
  const inTime = await before(clock, deadlineMs, calls.idle());
  if (!inTime) {
    log.warn({ deadline_ms: deadlineMs }, 'drain deadline exceeded, aborting calls');
  }
  // Only followers may be left now; their streams never end by themselves.
  await parts.beforeClose();
  calls.cut();
  health.close();
  const cut = new AbortController();
  const leftMs = Math.max(minCloseMs, endsAt - clock.monotonic());
  const timer = clock.after(leftMs, () => {
    if (leftMs > minCloseMs) log.warn({ deadline_ms: deadlineMs }, 'unread answers dropped');
    cut.abort();
  });
  await listeners.close(cut.signal);
  timer.cancel();
}

/** Whether the work ends within the limit. */
async function before(clock: Clock, limitMs: number, work: Promise<void>): Promise<boolean> {
  let timer: Timer | undefined;
  const timeUp = new Promise<boolean>((resolve) => {
    timer = clock.after(limitMs, () => resolve(false));
  });
  try {
    return await Promise.race([work.then(() => true), timeUp]);
  } finally {
    timer?.cancel();
  }
}

export interface RunningDatabase {
  readonly listeners: readonly ListenerAddress[];
  /** The current database; a follower that takes a new copy replaces it. */
  readonly database: Database;
  /** Rejects with the reason when the server fails on its own. */
  readonly ended: Promise<void>;
  /** Graceful shutdown: drains calls, then closes the database. Safe to call twice. */
  stop(): Promise<void>;
}

/** Opens the database and serves it. The composition root of the server. */
export async function serveDatabase(
  settings: DatabaseSettings,
  world: World,
): Promise<RunningDatabase> {
  checkSettings(settings);
  const tls = readTls(settings);
  const metrics = createMetrics('db');
  const undo: (() => unknown)[] = [() => metrics.close()];
  try {
    const open = () => openDatabase(settings, world);
    const handle = new DatabaseHandle(await open(), open);
    undo.push(() => handle.close());
    const { clock, log, random } = world;
    const access = openAccess(settings, handle.current.directory, world, metrics);
    const { keys } = access;
    if (keys) undo.push(() => keys.close());
    const memory = new PeerMemory(peerMemoryLimits(settings.max_peer_memory_bytes));
    const admission = new Admission({
      clock,
      log,
      maxInflight: settings.max_inflight,
      maxWatches: settings.max_watches,
      shedTargetMs: settings.shed_target_ms,
      shedIntervalMs: settings.shed_interval_ms,
      memory,
    });
    const meter = measureDatabase(metrics, handle.current, admission);
    undo.push(() => meter.stop());
    const { directory } = handle.current;
    const nodeId = nodeIdOf(directory, world);
    const cluster = openCluster(settings, world);
    const node = new Node({
      ...world,
      handle,
      nodeId,
      follow: settings.follow,
      followKey: settings.follow_key ?? access.ownerKey?.(),
      tls: tls ? { ca: tls.clientCa, certificate: tls.cert, key: tls.key } : {},
      minAcks: settings.min_acks,
      count: countNodeEvents(metrics),
      lease: cluster?.lease,
    });
    undo.push(() => node.stop());
    cluster?.attach(node, { nodeId, lineageId: () => handle.lineageId, metrics });
    if (cluster) undo.push(() => cluster.stop());
    describeNode(metrics, node);
    const service = createService({
      get database() {
        return handle.served;
      },
      handle,
      replication: node,
      clock,
      log,
      slowQueryMs: settings.slow_query_ms,
      slowQueries: new SlowQueryLog(),
      nodeId,
      version: serverVersion(),
      auth: keys ? 'keys' : 'none',
      cluster: () => cluster?.state,
    });
    const authenticator = new Authenticator(keys, clock);
    const callMetrics = new CallMetrics({
      clock,
      random,
      log,
      metrics,
      accessLog: settings.access_log,
    });
    const calls = new Calls({ clock, authenticator, admission, callMetrics, service });
    if (keys) undo.push(repeat(clock, recheckMs, () => calls.recheckWatches()));
    const health = new Health();
    health.hasData = handle.isServed;
    handle.onChange = () => {
      health.hasData = handle.isServed;
      meter.attach(handle.current);
    };
    const readiness = new Readiness({
      clock,
      directory,
      database: () => stateOf(handle, calls),
      cluster: cluster && (() => clusterHealth(cluster, node)),
    });
    const startWrites = () => handle.current.core.writer.startQueued();
    const listeners = await openListeners({
      settings: { ...settings, socket: settings.socket ?? join(directory, 'db.sock') },
      isSocketRequired: settings.socket !== undefined,
      tls,
      parts: { calls, clock, log, authenticator, health, readiness, metrics, memory, startWrites },
    });
    const ownUrl = listeners.addresses.find(({ listener }) => listener === 'grpc')?.url ?? '';
    const address = settings.advertise ?? ownUrl;
    node.start(address);
    cluster?.start(address);
    let stopping: Promise<void> | undefined;
    const stop = async () => {
      const deadlineMs = settings.drain_timeout_ms;
      const beforeClose = () => node.drainFollowers();
      await drain({ calls, health, listeners, clock, log, deadlineMs, beforeClose });
      await runAll(undo);
    };
    return {
      listeners: listeners.addresses,
      get database() {
        return handle.current;
      },
      ended: listeners.failed,
      stop: () => (stopping ??= stop()),
    };
  } catch (error) {
    await runAll(undo);
    throw error;
  }
}

function checkSettings(settings: DatabaseSettings): void {
  for (const [name, { indexes }] of Object.entries(settings.collections)) {
    try {
      checkCollectionName(name);
      for (const index of indexes) compileIndex(definitionOf(index as DeclaredIndex));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw new UsageError(`collections.${name}: ${error.detail}`, { cause: error });
    }
  }
  if (settings.cluster !== undefined && settings.follow !== undefined) {
    throw new UsageError('cluster and follow exclude each other: etcd decides which node leads');
  }
  for (const name of ['grpc', 'http'] as const) {
    const { host } = settings[name];
    if (settings.auth === 'keys' || isLoopback(host)) continue;
    throw new UsageError(
      `${name} listens at ${host}, which other machines can reach, and auth is none: ` +
        'remove --no-auth (auth: none), or listen at 127.0.0.1',
    );
  }
}

function openDatabase(settings: DatabaseSettings, { clock, random, log }: World) {
  const collections = Object.entries(settings.collections).map(([name, options]) => [
    name,
    { indexes: options.indexes, defaultTtlMs: options.default_ttl_ms },
  ]);
  return Database.open(settings.data, {
    upgrade: settings.upgrade,
    collections: Object.fromEntries(collections),
    durability: settings.durability === 'relaxed' ? 'relaxed' : 'strict',
    seal: (core) => sealOf(core, settings.follow, settings.cluster !== undefined),
    logRetention: { ageMs: settings.log_retention.age, bytes: settings.log_retention.bytes },
    logArchive: settings.log_archive
      ? { directory: settings.log_archive, intervalMs: settings.log_archive_interval }
      : undefined,
    clock,
    random,
    log,
  });
}

function stateOf({ isServed, current }: DatabaseHandle, calls: Calls): string {
  if (calls.isDraining) return 'shutting down';
  if (!isServed) return 'waiting for the first copy of its leader';
  if (current.core.writer.failure) return 'storage failed: check the disk and restart the server';
  return current.isOpen ? 'ok' : 'closed';
}

/** For `/readyz`: what the node does in its cluster, and what keeps it from working. */
function clusterHealth({ state: { problem } }: OpenedCluster, node: Node): string {
  const { state } = node.state();
  return problem === '' ? state : `${state}: ${problem}`;
}

const recheckMs = 2_000;

/** Runs cleanups in reverse order, all of them even if one fails. */
async function runAll(undo: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of [...undo].toReversed()) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
