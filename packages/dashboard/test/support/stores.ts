import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseConfig, serveDatabase, type RunningDatabase } from '@millrace/db/serve';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { hashSecret } from '@millrace/kit/tokens';
import { queueConfig, serveQueue, type RunningQueue } from '@millrace/queue/serve';

const queueToken = 'token-of-the-dashboard-test';

/** A real queue server, a real database, and a callback that responds by handler name. */
export class Stores {
  readonly folder = mkdtempSync(join(tmpdir(), 'mr-stores-'));
  /** Handlers that succeed although their names say otherwise. */
  readonly healthyHandlers = new Set<string>();
  readonly #callback = createServer((request, response) => {
    request.resume().on('end', () => {
      const handler = String(request.headers['x-queue-handler-ref']);
      const [status, text] = this.healthyHandlers.has(handler) ? success : responseFor(handler);
      response.writeHead(status, { 'content-type': 'text/plain' }).end(text);
    });
  });
  #queue: RunningQueue | undefined;
  #database: RunningDatabase | undefined;

  constructor(private readonly databaseSettings: Readonly<Record<string, unknown>> = {}) {}

  async start(): Promise<void> {
    this.#callback.listen(0, '127.0.0.1');
    await once(this.#callback, 'listening');
    await Promise.all([this.startQueue(), this.#startDatabase()]);
  }

  /** The daemon flags for these servers. */
  get flags(): Record<string, string> {
    return {
      'queue-url': this.queueUrl,
      'queue-token': queueToken,
      'database-url': this.databaseUrl,
    };
  }

  get queueUrl(): string {
    return urlOf(this.#queue!, 'http');
  }

  get databaseUrl(): string {
    return urlOf(this.#database!, 'http');
  }

  get callbackUrl(): string {
    return `http://127.0.0.1:${(this.#callback.address() as AddressInfo).port}/run`;
  }

  /** Pass `listen` to restart it at its previous address. */
  async startQueue(listen = '127.0.0.1:0'): Promise<void> {
    const tokens = [
      {
        id: 'root',
        principal: 'root',
        token_sha256: hashSecret(queueToken),
        grants: [{ queue: '*', role: 'admin' }],
      },
    ];
    const config = {
      listen,
      metrics_listen: '127.0.0.1:0',
      data: './queue',
      tokens_file: this.#write('tokens.json', { tokens }),
      drain_timeout_ms: 2000,
      callback_allowlist: [
        { scheme: 'http', host: '127.0.0.1', port: '*', networks: ['127.0.0.0/8'] },
      ],
    };
    const flags = { config: this.#write('queue.json', config) };
    const { values } = loadConfig(queueConfig, { flags, environment: {} });
    this.#queue = await serveQueue(values, world());
  }

  async stopQueue(): Promise<void> {
    await this.#queue?.stop();
  }

  async #startDatabase(): Promise<void> {
    const config = {
      grpc: '127.0.0.1:0',
      http: '127.0.0.1:0',
      data: join(this.folder, 'db'),
      auth: 'none',
      shed_target_ms: 0,
      collections: { people: { indexes: [{ fields: ['age'] }] } },
      ...this.databaseSettings,
    };
    const flags = { config: this.#write('db.json', config) };
    const { values } = loadConfig(databaseConfig, { flags, environment: {} });
    this.#database = await serveDatabase(values, world());
  }

  async stopDatabase(): Promise<void> {
    await this.#database?.stop();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#queue?.stop(), this.#database?.stop()]);
    this.#callback.closeAllConnections();
    this.#callback.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Calls the queue server directly, without the daemon. */
  async queue(method: string, path: string, body?: unknown): Promise<any> {
    return request(this.queueUrl + path, method, body, { authorization: `Bearer ${queueToken}` });
  }

  /** Calls the database directly. */
  async database(method: string, path: string, body?: unknown): Promise<any> {
    return request(this.databaseUrl + path, method, body, {});
  }

  async makeQueue(name: string, more: Record<string, unknown> = {}): Promise<void> {
    await this.queue('PUT', `/v1/admin/queues/${name}/config`, {
      callback: { url: this.callbackUrl },
      retry: { max_attempts: 2, initial_backoff_ms: 10 },
      circuit_breaker: { enabled: false },
      ...more,
    });
  }

  /** Submits `count` tasks of a handler, each with its own payload. */
  async submit(queue: string, handler: string, count: number, lifeMs = 0): Promise<void> {
    for (let sent = 0; sent < count; sent += 1_000) {
      const more = lifeMs > 0 && { expires_at: new Date(Date.now() + lifeMs).toISOString() };
      const items = Array.from({ length: Math.min(1_000, count - sent) }, (_, index) => ({
        handler_ref: handler,
        payload: Buffer.from(JSON.stringify({ letter: sent + index })).toString('base64'),
        payload_content_type: 'application/json',
        ...more,
      }));
      await this.queue('POST', `/v1/queues/${queue}/tasks:batch`, items);
    }
  }

  stats(queue: string): Promise<{ pending: number; in_flight: number; dlq_depth: number }> {
    return this.queue('GET', `/v1/queues/${queue}/stats`);
  }

  #write(name: string, content: unknown): string {
    const file = join(this.folder, name);
    writeFileSync(file, JSON.stringify(content));
    return file;
  }
}

function urlOf(server: RunningQueue | RunningDatabase, name: string): string {
  return server.listeners.find(({ listener }) => listener === name)!.url;
}

function world() {
  return { clock: systemClock, random: systemRandom, log: memoryLog() };
}

async function request(
  url: string,
  method: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<any> {
  const response = await fetch(url, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

const success: [status: number, text: string] = [200, 'thanks'];

/** The response of a handler, by its name. */
function responseFor(handler: string): [status: number, text: string] {
  if (handler.startsWith('refuse')) return [404, 'no such mailbox'];
  if (handler.startsWith('break')) return [500, 'out of paper'];
  return success;
}
