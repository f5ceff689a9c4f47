import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig, type ConfigInputs } from '@millrace/kit/config';
import { announce, serveUntilSignal, type SignalSource } from '@millrace/kit/http';
import { createLog, logLevelFrom, type RootLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import type { World } from '@millrace/kit/world';
import { queueConfig, type QueueSettings } from './config.js';
import { firstRun } from './first-run.js';
import { foundations } from './foundations.js';
import { startServer, type RunningQueue } from './server.js';

export { queueConfig, type QueueSettings } from './config.js';
export type { ListenerAddress } from './doors.js';
export type { RunningQueue } from './server.js';

export interface RunOptions extends ConfigInputs {
  /** The process; another one in tests. */
  signals?: SignalSource;
  /** Where the listening lines go; stdout unless told. */
  write?: (line: string) => void;
  log?: RootLog;
}

/** Opens the store and serves the queue. */
export function serveQueue(settings: QueueSettings, world: World): Promise<RunningQueue> {
  return startServer(settings, world, foundations);
}

/**
 * Runs the queue server as a process of its own: settings, listening lines, signals. Resolves
 * with the exit code. A mistake of the person who started it is thrown as a UsageError.
 */
export async function runQueue(options: RunOptions): Promise<number> {
  const { values: settings, warnings } = loadConfig(queueConfig, options);
  const log = options.log ?? logFor(settings, options.environment);
  for (const warning of warnings) log.warn({}, warning);
  const server = await serveQueue(settings, { clock: systemClock, random: systemRandom, log });
  for (const { listener, url } of server.listeners) {
    announce({ component: 'queue', listener, url }, options.write);
  }
  const failed = server.ended.then(
    () => 1,
    (error: unknown) => {
      log.error({ err: error }, 'the server ended by itself');
      return 1;
    },
  );
  const stopped = serveUntilSignal({
    clock: systemClock,
    log,
    // The drain has a limit of its own; this one is for what comes after it.
    deadlineMs: settings.drain_timeout_ms + afterDrainMs,
    steps: [{ name: 'queue', run: () => server.stop() }],
    ...(options.signals && { signals: options.signals }),
  });
  return Promise.race([stopped, failed]);
}

const afterDrainMs = 10_000;

/** Runs the queue as a part of `ctl up`; makes a token for its owner on the first run. */
export async function start({ dataDir }: { dataDir: string }): Promise<RunningQueue> {
  const { env } = process;
  const { values, warnings } = loadConfig(queueConfig, {
    environment: env,
    defaultFile: join(dataDir, 'queue.yaml'),
    flags: { data: dataDir },
  });
  const log = logFor(values, env);
  for (const warning of warnings) log.warn({}, warning);
  const world = { clock: systemClock, random: systemRandom, log };
  const tokens_file = values.tokens_file ?? firstRun(dataDir, world);
  return serveQueue({ ...values, tokens_file }, world);
}

function logFor(
  settings: QueueSettings,
  environment: Readonly<Record<string, string | undefined>>,
): RootLog {
  const level = settings.log_level ?? logLevelFrom(environment);
  return createLog({ level, component: 'queue' });
}
