import type { Metrics } from '../base/metrics.js';
import type { HttpApp } from './app.js';

/** Serves the metrics in Prometheus text. */
export function serveMetrics(
  app: Pick<HttpApp, 'addPage'>,
  metrics: Metrics,
  path = '/metrics',
): void {
  app.addPage(path, async (exchange) => {
    const text = await metrics.text();
    exchange.send(200, ['content-type', metrics.contentType], text);
  });
}
