import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { runServer, serverLog, whileStarting, type RunOptions } from '@millrace/kit/http';
import { systemRandom } from '@millrace/kit/random';
import { openTracer } from '@millrace/kit/tracing';
import { daemonConfig, defaultConfigFile } from './config.js';
import { serveDaemon } from './daemon.js';

export { daemonConfig, type DaemonSettings } from './config.js';
export { serveDaemon, type DaemonOptions, type RunningDaemon } from './daemon.js';

/**
 * Runs the daemon as a process: loads settings, prints the listening line, handles signals.
 * Resolves with the exit code. Throws UsageError for invalid settings.
 */
export async function runDaemon(options: RunOptions): Promise<number> {
  const { environment } = options;
  const loaded = loadConfig(daemonConfig, {
    defaultFile: defaultConfigFile(environment),
    ...options,
  });
  const log = serverLog('daemon', loaded.values.log_level, options);
  for (const warning of loaded.warnings) log.warn({}, warning);
  const tracer = openTracer('daemon', { environment, clock: systemClock, log });
  const world = { clock: systemClock, random: systemRandom, log, tracer };
  const daemon = await whileStarting(
    () => serveDaemon(loaded, world, { environment }),
    options.signals,
  );
  if (!daemon) return 0;
  const drainTimeoutMs = loaded.values.drain_timeout_ms;
  const code = await runServer(daemon, { ...options, component: 'daemon', log, drainTimeoutMs });
  await tracer?.close();
  return code;
}
