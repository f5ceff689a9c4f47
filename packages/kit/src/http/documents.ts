import type { Metrics } from '../metrics.js';
import type { HttpApp } from './app.js';

/** Serves a text that never changes, such as the OpenAPI document, without a token. */
export function serveText(
  { fastify }: Pick<HttpApp, 'fastify'>,
  path: string,
  contentType: string,
  text: string,
): void {
  const bytes = Buffer.from(text);
  fastify.get(path, (_request, reply) => reply.header('content-type', contentType).send(bytes));
}

/** Serves the OpenAPI document as it was written. */
export function serveYaml(app: Pick<HttpApp, 'fastify'>, path: string, yaml: string): void {
  serveText(app, path, 'application/yaml', yaml);
}

/** Serves the metrics in Prometheus text. */
export function serveMetrics(
  { fastify }: Pick<HttpApp, 'fastify'>,
  metrics: Metrics,
  path = '/metrics',
): void {
  fastify.get(path, async (_request, reply) => {
    const text = await metrics.text();
    return reply.header('content-type', metrics.contentType).send(text);
  });
}
