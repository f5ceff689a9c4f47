import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { runServer, serverLog, whileStarting, type RunOptions } from '@millrace/kit/http';
import { systemRandom } from '@millrace/kit/random';
import { databaseConfig } from './base/config.js';
import { serveDatabase } from './server.js';

export { databaseConfig, type DatabaseSettings } from './base/config.js';
export { serveDatabase, type ListenerAddress, type RunningDatabase } from './server.js';

/**
 * Runs the database server as a process: settings, listening lines, signals. Resolves with the exit
 * code. Throws UsageError for invalid settings.
 */
export async function runDatabase(options: RunOptions): Promise<number> {
  const { values: settings, warnings } = loadConfig(databaseConfig, options);
  const log = serverLog('db', settings.log_level, options);
  for (const warning of warnings) log.warn({}, warning);
  const world = { clock: systemClock, random: systemRandom, log };
  const server = await whileStarting(() => serveDatabase(settings, world), options.signals);
  if (!server) return 0;
  const drainTimeoutMs = settings.drain_timeout_ms;
  return runServer(server, { ...options, component: 'db', log, drainTimeoutMs });
}
