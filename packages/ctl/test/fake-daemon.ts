import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeReply {
  status?: number;
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
        const { status = 200, body: answer } =
          typeof route === 'function' ? route(body, url) : route;
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

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}
