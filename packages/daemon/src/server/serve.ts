import { systemClock } from '@millrace/kit/clock';
import { loadConfig, type ConfigInputs } from '@millrace/kit/config';
import { announce, serveUntilSignal, type SignalSource } from '@millrace/kit/http';
import { createLog, logLevelFrom, type RootLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { daemonConfig, defaultConfigFile, type DaemonSettings } from './config.js';
import { serveDaemon, type RunningDaemon } from './daemon.js';

export { daemonConfig, type DaemonSettings } from './config.js';
export { serveDaemon, type DaemonOptions, type RunningDaemon } from './daemon.js';

export interface RunOptions extends ConfigInputs {
  /** The process; another one in tests. */
  signals?: SignalSource;
  /** Where the listening line goes; stdout unless told. */
  write?: (line: string) => void;
  log?: RootLog;
}

/**
 * Runs the daemon as a process of its own: settings, listening line, signals. Resolves with the
 * exit code. A mistake of the person who started it is thrown as a UsageError.
 */
export async function runDaemon(options: RunOptions): Promise<number> {
  const { environment } = options;
  const loaded = loadConfig(daemonConfig, {
    defaultFile: defaultConfigFile(environment),
    ...options,
  });
  const log = options.log ?? logFor(loaded.values, environment);
  for (const warning of loaded.warnings) log.warn({}, warning);
  const world = { clock: systemClock, random: systemRandom, log };
  const daemon = await serveDaemon(loaded, world, { environment });
  for (const { listener, url } of daemon.listeners) {
    announce({ component: 'daemon', listener, url }, options.write);
  }
  const failed = daemon.ended.then(
    () => 1,
    (error: unknown) => {
      log.error({ err: error }, 'the daemon ended by itself');
      return 1;
    },
  );
  const stopped = serveUntilSignal({
    clock: systemClock,
    log,
    // The drain has a limit of its own; this one is for what comes after it.
    deadlineMs: loaded.values.drain_timeout_ms + afterDrainMs,
    steps: [{ name: 'daemon', run: () => daemon.stop() }],
    ...(options.signals && { signals: options.signals }),
  });
  return Promise.race([stopped, failed]);
}

const afterDrainMs = 10_000;

/** Runs the daemon as a part of `ctl up`, with its data in that directory. */
export async function start({ dataDir }: { dataDir: string }): Promise<RunningDaemon> {
  const { env: environment } = process;
  const loaded = loadConfig(daemonConfig, {
    environment,
    defaultFile: defaultConfigFile(environment),
    flags: { data: dataDir },
  });
  const log = logFor(loaded.values, environment);
  for (const warning of loaded.warnings) log.warn({}, warning);
  return serveDaemon(loaded, { clock: systemClock, random: systemRandom, log }, { environment });
}

function logFor(
  settings: DaemonSettings,
  environment: Readonly<Record<string, string | undefined>>,
): RootLog {
  const level = settings.log_level ?? logLevelFrom(environment);
  return createLog({ level, component: 'daemon' });
}
