import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { systemCode } from '@millrace/kit/errors';
import { type RunOptions, runServer, serverLog, whileStarting } from '@millrace/kit/http';
import { systemRandom } from '@millrace/kit/random';
import { openTracer } from '@millrace/kit/tracing';
import type { World } from '@millrace/kit/world';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createDelivery } from '../delivery/index.js';
import { openStore } from '../storage/open-store.js';
import { StorageUnavailable, type TaskStore } from '../storage/port/task-store.js';
import { queueConfig, type QueueSettings } from './config.js';
import type { SettingsFile } from './credentials-files.js';
import { type RunningQueue, type ServerDependencies, startServer } from './server.js';

export { queueConfig, type QueueSettings } from './config.js';
export type { ListenerAddress } from './listeners.js';
export type { RunningQueue } from './server.js';

/** Opens the store and serves the queue. `stopping` ends the wait for a database. */
export function serveQueue(
  settings: QueueSettings,
  world: World,
  stopping?: AbortSignal,
  settingsFile?: SettingsFile,
): Promise<RunningQueue> {
  const openStore: typeof serverDependencies.openStore = (queueSettings, within) =>
    serverDependencies.openStore(queueSettings, within, stopping);
  return startServer(settings, world, { ...serverDependencies, openStore, settingsFile });
}

/**
 * Runs the queue server process: settings, listening lines, signals. Resolves with the exit code.
 * Throws a UsageError for wrong settings.
 */
export async function runQueue(options: RunOptions): Promise<number> {
  const { values: settings, warnings, file } = loadConfig(queueConfig, options);
  const log = serverLog('queue', settings.log_level, options);
  for (const warning of warnings) log.warn({}, warning);
  const { environment } = options;
  const tracer = openTracer('queue', { environment, clock: systemClock, log });
  const world = { clock: systemClock, random: systemRandom, log, tracer };
  const read = () => loadConfig(queueConfig, options).values;
  const settingsFile = file === undefined ? undefined : { file: resolve(file), read };
  const server = await whileStarting(
    (stopping) => serveQueue(settings, world, stopping, settingsFile),
    options.signals,
  );
  if (!server) return 0;
  const forgetAddress = await keepAddress(settings.data, server);
  const drainTimeoutMs = settings.drain_timeout_ms;
  const code = await runServer(server, { ...options, component: 'queue', log, drainTimeoutMs });
  await forgetAddress();
  await tracer?.close();
  return code;
}

/**
 * Writes the addresses into the data directory, where commands with --data find them, unless a
 * running `ctl up` did. Returns a function that removes them.
 */
async function keepAddress(
  data: string,
  { listeners }: RunningQueue,
): Promise<() => Promise<void>> {
  const file = join(data, 'queue.url');
  const before = await readFile(file, 'utf8').catch(() => '');
  const owner = Number(before.split('\n')[1]);
  if (owner > 0 && owner !== process.pid && isRunning(owner)) return async () => {};
  const url = (listener: string) => listeners.find((each) => each.listener === listener)?.url ?? '';
  const text = [url('http'), process.pid, url('metrics'), url('grpc')].join('\n');
  await writeFile(file, `${text}\n`);
  return async () => {
    const now = await readFile(file, 'utf8').catch(() => '');
    if (now === `${text}\n`) await rm(file, { force: true });
  };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process is running too.
    return systemCode(error) === 'EPERM';
  }
}

const firstPauseMs = 250;
const maxPauseMs = 5_000;

/** The real store and the real delivery. */
export const serverDependencies = {
  openStore: (settings: QueueSettings, world: World, stopping?: AbortSignal) => {
    const { storage, data, upgrade, log_archive: directory } = settings;
    const intervalMs = settings.log_archive_interval;
    const logArchive = directory ? { directory, intervalMs, batches: true } : undefined;
    const options = { ...world, dataDirectory: data, upgrade, logArchive };
    return retryUntilOpen(world, () => openStore(storage, options), stopping);
  },
  createDelivery,
} satisfies ServerDependencies;

/** Waits for the database, because it may start after this server. */
async function retryUntilOpen(
  { clock, log }: World,
  open: () => Promise<TaskStore>,
  stopping: AbortSignal | undefined,
): Promise<TaskStore> {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      log.warn({ retry_ms: pauseMs }, `waits for its storage: ${error.message}`);
      await clock.sleep(pauseMs, stopping);
    }
  }
}
