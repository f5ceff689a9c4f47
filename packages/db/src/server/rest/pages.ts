import { docsSite, type Asset, headerList, type Exchange } from '@millrace/kit/http';
import { openApiYaml } from '@millrace/contract/documents';
import { isLoopback } from '@millrace/kit/config';
import type { Metrics } from '@millrace/kit/metrics';
import type { Authenticator } from '../access/access.js';
import type { Readiness } from '../base/status.js';
import { noSuchRoute, type Page } from './routes.js';

const site = docsSite({
  title: 'Millrace database',
  document: '/openapi.yaml',
  assets: '/docs',
});

const docsHeaders = site.headers;

/** A file of the documentation page. */
function docsAsset(path: string): Asset | undefined {
  if (path === '/docs') return site.page;
  return path.startsWith('/docs/') ? site.asset(path.slice('/docs/'.length)) : undefined;
}

interface PageParts {
  authenticator: Authenticator;
  readiness: Readiness;
  metrics: Metrics;
}

const retryAfterSeconds = '1';

/** Health, metrics and API documentation pages. */
export class Pages {
  /** By path. */
  readonly all: ReadonlyMap<string, Page>;
  #yaml: Buffer | undefined;

  constructor(private readonly parts: PageParts) {
    this.all = new Map<string, Page>([
      ['/healthz', (exchange) => sendJson(exchange, 200, { status: 'ok' })],
      ['/readyz', (exchange) => this.#ready(exchange)],
      ['/metrics', (exchange) => this.#metrics(exchange)],
      ['/openapi.yaml', (exchange) => this.#openApi(exchange)],
      ['/docs', sendAsset],
      ['/docs/{file}', sendAsset],
    ]);
  }

  async #ready(exchange: Exchange): Promise<void> {
    const { isReady, checks } = await this.parts.readiness.check();
    if (isReady) sendJson(exchange, 200, { status: 'ready', checks });
    else {
      sendJson(
        exchange,
        503,
        { status: 'not_ready', checks },
        { 'retry-after': retryAfterSeconds },
      );
    }
  }

  async #metrics(exchange: Exchange): Promise<void> {
    const { authenticator, metrics } = this.parts;
    const { headers, ip } = exchange;
    if (authenticator.needsKeys && !isLoopback(ip)) {
      const { 'x-api-key': apiKey, authorization } = headers;
      authenticator.identify({ apiKey: apiKey?.toString(), authorization });
    }
    send(exchange, 200, metrics.contentType, Buffer.from(await metrics.text()), {});
  }

  #openApi(exchange: Exchange): void {
    this.#yaml ??= Buffer.from(openApiYaml('db'));
    send(exchange, 200, 'application/yaml', this.#yaml, {});
  }
}

function sendAsset(exchange: Exchange): void {
  const asset = docsAsset(exchange.path);
  if (!asset) throw noSuchRoute(exchange.path);
  send(exchange, 200, asset.contentType, asset.bytes, docsHeaders);
}

function sendJson(
  exchange: Exchange,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  send(exchange, status, 'application/json', Buffer.from(JSON.stringify(body)), headers);
}

function send(
  exchange: Exchange,
  status: number,
  contentType: string,
  bytes: Buffer,
  headers: Record<string, string>,
): void {
  const list = headerList({
    'content-type': contentType,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  exchange.send(status, list, bytes);
}
