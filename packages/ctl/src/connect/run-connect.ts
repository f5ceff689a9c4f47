import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { announce } from '@millrace/kit/http';
import { createLog, logLevelFrom, silentLog, type Log } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { openDatabase } from '../db/connection.js';
import { queueApi, type QueueApi } from '../queue/api.js';
import type { Flags, Tools } from '../base/tools.js';
import { Connector } from './connector.js';
import { readConnectors } from './connectors-file.js';
import { ConnectorMetrics } from './metrics.js';

export type ConnectFlags = Flags<'metricsListen tlsCa tlsCert tlsKey', 'check'> & {
  config: string;
};

/** A connector calls the queue first when a change arrives, which may be hours from now. */
async function warnIfAway(queue: QueueApi, log: Log): Promise<void> {
  try {
    await queue.call('getLiveness', { patienceMs: probeMs });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    log.warn({ url: queue.url, reason: error.detail }, 'queue does not answer');
  }
}

const probeMs = 5_000;

/** Runs all connectors of a file until it is stopped. */
export async function runConnect(flags: ConnectFlags, tools: Tools): Promise<void> {
  const { terminal, lifecycle } = tools;
  const connectors = readConnectors(flags.config);
  if (flags.check) {
    const names = connectors.map(({ name }) => name);
    terminal.showLine({ connectors: names }, `${flags.config} is valid: ${names.join(', ')}\n`);
    return;
  }
  const log = createLog({ level: logLevelFrom(terminal.env), component: 'connect' });
  const world = { clock: systemClock, random: systemRandom, log };
  await lifecycle.serve(async (stopped) => {
    const stop = new AbortController();
    void stopped.then(() => stop.abort());
    const metrics = new ConnectorMetrics(systemClock);
    const page = await metrics.serve(flags.metricsListen ?? '127.0.0.1:0', {
      ...world,
      log: silentLog,
    });
    const write = (line: string) => terminal.out.write(line);
    announce({ component: 'connect', listener: 'metrics', url: page.url }, write);
    let database: Awaited<ReturnType<typeof openDatabase>> | undefined;
    try {
      database = await openDatabase(flags, terminal.env);
      const queue = queueApi({}, { terminal, lifecycle });
      await warnIfAway(queue, log);
      const parts = { database, queue, metrics, ...world };
      const running = connectors.map((config) => new Connector(config, parts).run(stop.signal));
      await Promise.all(running);
    } finally {
      stop.abort();
      await database?.close();
      await page.close();
      metrics.close();
    }
  });
}
