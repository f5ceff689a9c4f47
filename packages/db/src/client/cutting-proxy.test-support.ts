import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A TCP proxy that injects network faults. */
export class CuttingProxy {
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #dropsReplies = false;
  #isDown = false;
  /** Bytes from the server that may pass before all connections are closed. */
  #allowance = Infinity;
  #staysDown = false;
  #delayMs = 0;

  private constructor(
    private readonly server: Server,
    private readonly target: { host: string; port: number },
  ) {
    server.on('connection', (client) => this.#take(client));
  }

  static async before(url: string): Promise<CuttingProxy> {
    const { hostname, port } = new URL(url);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new CuttingProxy(server, { host: hostname, port: Number(port) });
  }

  get url(): string {
    return `grpc://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Closes all connections. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    this.#pairs.clear();
  }

  /** Drops responses until the next `heal`. */
  dropReplies(): void {
    this.#dropsReplies = true;
  }

  /** Delays every response until the next `heal`. */
  delayReplies(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  /**
   * Closes all connections after this many more bytes from the server, and optionally stays down.
   */
  cutAfter(bytes: number, staysDown = false): void {
    this.#allowance = bytes;
    this.#staysDown = staysDown;
  }

  /** Refuses new connections. */
  goDown(): void {
    this.#isDown = true;
    this.cut();
  }

  heal(): void {
    this.#isDown = false;
    this.#dropsReplies = false;
    this.#delayMs = 0;
    this.#allowance = Infinity;
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  #take(client: Socket): void {
    client.on('error', () => undefined);
    if (this.#isDown) return void client.destroy();
    const upstream = connect(this.target);
    const pair = [client, upstream] as const;
    this.#pairs.add(pair);
    upstream.on('error', () => client.destroy());
    client.on('data', (bytes) => upstream.write(bytes));
    upstream.on('data', (bytes) => this.#reply(client, bytes));
    const end = () => {
      for (const socket of pair) socket.destroy();
      this.#pairs.delete(pair);
    };
    client.on('close', end);
    upstream.on('close', end);
  }

  #reply(client: Socket, bytes: Buffer): void {
    if (this.#dropsReplies) return;
    const passed = bytes.subarray(0, Math.min(bytes.length, this.#allowance));
    if (this.#delayMs === 0) client.write(passed);
    // Delays keep the order of the bytes.
    else setTimeout(() => client.destroyed || client.write(passed), this.#delayMs);
    this.#allowance -= bytes.length;
    if (this.#allowance > 0) return;
    this.#allowance = Infinity;
    if (this.#staysDown) this.#isDown = true;
    setImmediate(() => this.cut());
  }
}
