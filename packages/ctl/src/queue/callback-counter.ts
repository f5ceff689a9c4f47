import { Refusal } from '@millrace/kit/errors';
import { exchange, isAbort, reasonOf } from '../base/exchange.js';
import { checkedUrl, defaultMetricsUrl } from './locate.js';

/** Number of callbacks by queue; undefined if the metrics are not available. */
export type CallbackCounter = () => Promise<ReadonlyMap<string, number> | undefined>;

const patienceMs = 2_000;

/** Reads the server's metrics, which have their own listener: --metrics-url, or where it is. */
export function callbackCounter(
  located: string | undefined,
  metricsUrl: string | undefined,
  signal: AbortSignal,
): CallbackCounter {
  const given = metricsUrl && checkedUrl(metricsUrl, '--metrics-url', defaultMetricsUrl);
  const place = given ?? located;
  if (place === undefined) return () => Promise.resolve(undefined);
  const address = place.endsWith('/metrics') ? place : `${place}/metrics`;
  return async () => {
    try {
      const request = { method: 'GET', url: address, signal, patienceMs };
      const { status, text } = await exchange({ ...request, headers: { accept: 'text/plain' } });
      if (status === 200) return countsIn(text);
      throw new Error(`status ${status}`);
    } catch (error) {
      if (isAbort(error)) throw error;
      if (given) throw noMetrics(address, error);
      // Metrics may be turned off.
      return undefined;
    }
  };
}

function noMetrics(address: string, error: unknown): Refusal {
  return new Refusal(
    'UNAVAILABLE',
    `no metrics at ${address} (${reasonOf(error)}). Use the address that \`ctl queue ` +
      'serve` prints for its listener "metrics".',
    { cause: error },
  );
}

/** Adds up the outcomes of each queue. Names of queues need no escaping. */
export function countsIn(text: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [, labels = '', value = ''] of text.matchAll(
    /^millrace_queue_deliveries_total\{([^}]*)\} (\S+)/gm,
  )) {
    const queue = /(?:^|,)queue="([^"]*)"/.exec(labels)?.[1];
    if (queue !== undefined) counts.set(queue, (counts.get(queue) ?? 0) + Number(value));
  }
  return counts;
}
