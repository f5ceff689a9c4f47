import { UsageError } from '@millrace/kit/errors';
import { isLoopback } from '@millrace/kit/config';
import { createMetrics } from '@millrace/kit/metrics';
import { watchFile, type WatchedFile } from '@millrace/kit/tokens';
import type { World } from '@millrace/kit/world';
import { join } from 'node:path';
import { Database } from '../engine/database.js';
import { Gate } from './access/gate.js';
import { parseKeys, type KeySet } from './access/keys.js';
import { Calls } from './calls/calls.js';
import type { DatabaseSettings } from './config.js';
import { drain } from './drain.js';
import { Health } from './grpc/health.js';
import { Admission } from './limits/admission.js';
import { openListeners, type ListenerAddress } from './listeners/listeners.js';
import { readTls } from './listeners/tls.js';
import { nodeIdOf } from './node-id.js';
import { measureDatabase } from './observe/database-metrics.js';
import { CallLedger } from './observe/ledger.js';
import { Readiness } from './readiness.js';
import { repeat } from './repeat.js';
import { loneLeader, type Replication } from './service/replication.js';
import { createService } from './service/service.js';
import { serverVersion } from './version.js';

export type { ListenerAddress } from './listeners/listeners.js';

export interface RunningDatabase {
  readonly listeners: readonly ListenerAddress[];
  readonly database: Database;
  /** Settles when the server ends without having been asked to; rejects with the reason. */
  readonly ended: Promise<void>;
  /** Takes no new calls, lets those under way finish, closes the database. Safe to call twice. */
  stop(): Promise<void>;
}

/** Opens the database and serves it: the one place where everything is put together. */
export async function serveDatabase(
  settings: DatabaseSettings,
  world: World,
): Promise<RunningDatabase> {
  checkSettings(settings);
  const tls = readTls(settings);
  const metrics = createMetrics('db');
  const undo: (() => unknown)[] = [() => metrics.close()];
  try {
    const keys = keysOf(settings, world, metrics);
    if (keys) undo.push(() => keys.close());
    const database = await openDatabase(settings, world);
    undo.push(() => database.close());
    const { clock, log, random } = world;
    const admission = new Admission({
      clock,
      log,
      maxInflight: settings.max_inflight,
      maxWatches: settings.max_watches,
      shedTargetMs: settings.shed_target_ms,
    });
    undo.push(measureDatabase(metrics, database, admission));
    const replication: Replication = loneLeader(database);
    undo.push(() => replication.stop());
    const service = createService({
      database,
      replication,
      clock,
      log,
      slowQueryMs: settings.slow_query_ms,
      nodeId: nodeIdOf(database.directory, world),
      version: serverVersion(),
    });
    const gate = new Gate(keys, clock);
    const ledger = new CallLedger({ clock, random, log, metrics, accessLog: settings.access_log });
    const calls = new Calls({ clock, gate, admission, ledger, service });
    if (keys) undo.push(repeat(clock, recheckMs, () => calls.recheckWatches()));
    const health = new Health();
    const readiness = new Readiness({
      clock,
      directory: database.directory,
      database: () => stateOf(database, calls),
    });
    const listeners = await openListeners({
      settings: { ...settings, socket: settings.socket ?? join(database.directory, 'db.sock') },
      isSocketAsked: settings.socket !== undefined,
      tls,
      parts: { calls, clock, log, gate, health, readiness, metrics },
    });
    let stopping: Promise<void> | undefined;
    const stop = async () => {
      await drain({ calls, health, listeners, clock, log, deadlineMs: settings.drain_timeout_ms });
      await runAll(undo);
    };
    return {
      listeners: listeners.addresses,
      database,
      ended: listeners.failed,
      stop: () => (stopping ??= stop()),
    };
  } catch (error) {
    await runAll(undo);
    throw error;
  }
}

function checkSettings(settings: DatabaseSettings): void {
  for (const name of ['grpc', 'http'] as const) {
    const { host } = settings[name];
    if (settings.keys_file !== undefined || isLoopback(host)) continue;
    throw new UsageError(
      `${name} listens at ${host}, which others can reach, and there is no keys_file: ` +
        'name one, or listen at 127.0.0.1',
    );
  }
  if (settings.follow !== undefined) {
    throw new UsageError('follow is not available in this server: it runs as a leader alone');
  }
  if (settings.min_acks > 0) {
    throw new UsageError('min_acks needs followers, and this server takes none: leave it at 0');
  }
}

function keysOf(
  settings: DatabaseSettings,
  { clock, log }: World,
  metrics: ReturnType<typeof createMetrics>,
): WatchedFile<KeySet> | undefined {
  const { keys_file: file } = settings;
  if (file === undefined) return undefined;
  return watchFile({ file, name: 'keys', parse: parseKeys, clock, log, metrics });
}

function openDatabase(settings: DatabaseSettings, { clock, random, log }: World) {
  const collections = Object.entries(settings.collections).map(([name, options]) => [
    name,
    { indexes: options.indexes, defaultTtlMs: options.default_ttl_ms },
  ]);
  return Database.open(settings.data, {
    collections: Object.fromEntries(collections),
    durability: settings.durability === 'relaxed' ? 'relaxed' : 'strict',
    logRetention: { ageMs: settings.log_retention.age, bytes: settings.log_retention.bytes },
    clock,
    random,
    log,
  });
}

function stateOf(database: Database, calls: Calls): string {
  if (calls.isDraining) return 'shutting down';
  return database.isOpen ? 'ok' : 'closed';
}

const recheckMs = 2_000;

/** In the opposite order, each one although another failed. */
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
