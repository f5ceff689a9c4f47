import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig, type ConfigInputs } from '@millrace/kit/config';
import { announce, serveUntilSignal, type SignalSource } from '@millrace/kit/http';
import { createLog, logLevelFrom, type RootLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { databaseConfig, type DatabaseSettings } from './config.js';
import { serveDatabase, type RunningDatabase } from './server.js';

export { databaseConfig, type DatabaseSettings } from './config.js';
export { serveDatabase, type ListenerAddress, type RunningDatabase } from './server.js';

export interface RunOptions extends ConfigInputs {
  /** The process; another one in tests. */
  signals?: SignalSource;
  /** Where the listening lines go; stdout unless told. */
  write?: (line: string) => void;
  log?: RootLog;
}

/**
 * Runs the database server as a process of its own: settings, listening lines, signals. Resolves
 * with the exit code. A mistake of the person who started it is thrown as a UsageError.
 */
export async function runDatabase(options: RunOptions): Promise<number> {
  const { values: settings, warnings } = loadConfig(databaseConfig, options);
  const log = options.log ?? logFor(settings, options.environment);
  for (const warning of warnings) log.warn({}, warning);
  const server = await serveDatabase(settings, { clock: systemClock, random: systemRandom, log });
  for (const { listener, url } of server.listeners) {
    announce({ component: 'db', listener, url }, options.write);
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
    steps: [{ name: 'database', run: () => server.stop() }],
    ...(options.signals && { signals: options.signals }),
  });
  return Promise.race([stopped, failed]);
}

const afterDrainMs = 10_000;

/** Runs the database as a part of `ctl up`, with its data in a directory of its own. */
export async function start({ dataDir }: { dataDir: string }): Promise<RunningDatabase> {
  const { env } = process;
  const { values: settings } = loadConfig(databaseConfig, {
    environment: env,
    defaultFile: join(dataDir, 'db.yaml'),
    flags: { data: join(dataDir, 'db') },
  });
  const log = logFor(settings, env);
  return serveDatabase(settings, { clock: systemClock, random: systemRandom, log });
}

function logFor(
  settings: DatabaseSettings,
  environment: Readonly<Record<string, string | undefined>>,
): RootLog {
  const level = settings.log_level ?? logLevelFrom(environment);
  return createLog({ level, component: 'db' });
}
