import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeReply {
  status?: number;
  /** Stays open as a stream of server-sent events, which `emit` writes. */
  isStream?: boolean;
  /** An object is sent as JSON, a text as it is. */
  body: unknown;
}

/** A daemon that returns fixed responses, for cases that a real one cannot produce. */
export class FakeDaemon {
  readonly requests: { line: string; authorization: string | undefined; body: string }[] = [];
  reply: FakeReply = { body: {} };
  /** Answers of their own, by `GET /path`; a function makes one from what was sent. */
  readonly routes = new Map<string, FakeReply | ((body: string, url: URL) => FakeReply)>();
  readonly #server: Server;
  readonly #streams = new Set<ServerResponse>();

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        const { authorization } = request.headers;
        this.requests.push({ line: `${request.method} ${request.url}`, authorization, body });
        const url = new URL(request.url ?? '/', 'http://fake');
        const route = this.routes.get(`${request.method} ${url.pathname}`) ?? this.reply;
        const reply = typeof route === 'function' ? route(body, url) : route;
        const { status = 200, body: answer, isStream = false } = reply;
        if (isStream) {
          response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n');
          this.#streams.add(response);
          return;
        }
        const type = status < 400 ? 'application/json' : 'application/problem+json';
        response.writeHead(status, { 'content-type': type });
        response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
      });
    });
  }

  static async start(): Promise<FakeDaemon> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FakeDaemon(server);
  }

  /** Sends one event to everybody who follows. */
  emit(type: string): void {
    for (const stream of this.#streams) stream.write(`event: ${type}\ndata: {}\n\n`);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}
