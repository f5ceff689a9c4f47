import {
  createServer,
  type IncomingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  method: string;
  target: string;
  headers: IncomingHttpHeaders;
  text: string;
}

type Behaviour = number | 'cut' | ((response: ServerResponse, received: Received) => void);

/** Stands for the queue server and for the database, and writes down what it is asked. */
export class FakeUpstream {
  readonly received: Received[] = [];
  #behaviour: Behaviour = 200;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        const text = Buffer.concat(chunks).toString();
        const received = { method, target: url, headers, text };
        this.received.push(received);
        this.#answer(response, received);
      });
    });
  }

  static async start(): Promise<FakeUpstream> {
    const upstream = new FakeUpstream();
    await new Promise<void>((resolve) => {
      upstream.#server.listen(0, '127.0.0.1', resolve);
    });
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get last(): Received {
    return this.received.at(-1)!;
  }

  /** Answers with this status, breaks off, or does as told, for as long as `run` takes. */
  async answering<T>(behaviour: Behaviour, run: () => Promise<T>): Promise<T> {
    this.#behaviour = behaviour;
    try {
      return await run();
    } finally {
      this.#behaviour = 200;
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  #answer(response: ServerResponse, received: Received): void {
    if (typeof this.#behaviour === 'function') return this.#behaviour(response, received);
    if (this.#behaviour === 'cut') return void response.destroy();
    response.writeHead(this.#behaviour, { 'content-type': 'application/json' });
    response.end('{"answered":true}');
  }
}
