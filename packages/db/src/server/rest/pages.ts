import type { IncomingMessage, ServerResponse } from 'node:http';
import { openApiYaml } from '@millrace/contract/documents';
import { isLoopback } from '@millrace/kit/config';
import type { Metrics } from '@millrace/kit/metrics';
import type { Gate } from '../access/gate.js';
import type { Readiness } from '../readiness.js';
import { docsAsset, docsHeaders } from './assets.js';
import { checkOrigin } from './origin.js';

export interface PageParts {
  gate: Gate;
  readiness: Readiness;
  metrics: Metrics;
}

type Page = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void;

const retryAfterSeconds = '1';

/** What is served beside the methods: health, metrics and the description of it all. */
export class Pages {
  readonly #pages: ReadonlyMap<string, Page>;
  #yaml: Buffer | undefined;

  constructor(private readonly parts: PageParts) {
    this.#pages = new Map<string, Page>([
      ['/healthz', (_, response) => sendJson(response, 200, { status: 'ok' })],
      ['/readyz', (_, response) => this.#ready(response)],
      ['/metrics', (request, response) => this.#metrics(request, response)],
      ['/openapi.yaml', (_, response) => this.#openApi(response)],
    ]);
  }

  find(path: string): Page | undefined {
    const page = this.#pages.get(path);
    if (page) return page;
    if (!path.startsWith('/docs')) return undefined;
    const asset = docsAsset(path);
    return (
      asset && ((_, response) => send(response, 200, asset.contentType, asset.bytes, docsHeaders))
    );
  }

  async #ready(response: ServerResponse): Promise<void> {
    const { isReady, checks } = await this.parts.readiness.look();
    if (isReady) sendJson(response, 200, { status: 'ready', checks });
    else {
      sendJson(
        response,
        503,
        { status: 'not_ready', checks },
        { 'retry-after': retryAfterSeconds },
      );
    }
  }

  async #metrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { gate, metrics } = this.parts;
    if (!gate.needsKeys) checkOrigin(request.headers);
    else if (!isLoopback(request.socket.remoteAddress ?? '')) {
      gate.identify({
        apiKey: request.headers['x-api-key']?.toString(),
        authorization: request.headers.authorization,
      });
    }
    send(response, 200, metrics.contentType, Buffer.from(await metrics.text()), {});
  }

  #openApi(response: ServerResponse): void {
    this.#yaml ??= Buffer.from(openApiYaml('db'));
    send(response, 200, 'application/yaml', this.#yaml, {});
  }
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  send(response, status, 'application/json', Buffer.from(JSON.stringify(body)), headers);
}

function send(
  response: ServerResponse,
  status: number,
  contentType: string,
  bytes: Buffer,
  headers: Record<string, string>,
): void {
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': bytes.length,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  response.end(bytes);
}
