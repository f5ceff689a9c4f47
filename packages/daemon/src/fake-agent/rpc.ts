import { createInterface } from 'node:readline';

interface Message {
  id?: number | string | null;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

/** An error that is answered as JSON-RPC has it. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

type Handler = (method: string, params: Record<string, unknown>) => Promise<unknown>;

/** The two ends of a connection; by default stdin and stdout of this process. */
interface RpcStreams {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
}

/** JSON-RPC, one message in each line. */
export class Rpc {
  #count = 0;
  readonly #waiting = new Map<number, (message: Message) => void>();

  constructor(
    private readonly handle: Handler,
    private readonly streams: RpcStreams = { input: process.stdin, output: process.stdout },
  ) {}

  /** Resolves when the input ends. */
  async serve(): Promise<void> {
    for await (const line of createInterface({ input: this.streams.input })) {
      if (line.trim() !== '') this.#take(JSON.parse(line) as Message);
    }
  }

  notify(method: string, params: object): void {
    this.#send({ method, params: params as Record<string, unknown> });
  }

  request(method: string, params: object): Promise<Record<string, unknown>> {
    const id = ++this.#count;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) => {
        if (error) reject(new RpcError(error.code, error.message));
        else resolve((result ?? {}) as Record<string, unknown>);
      });
      this.#send({ id, method, params: params as Record<string, unknown> });
    });
  }

  #take(message: Message): void {
    const { id, method, params = {} } = message;
    if (method === undefined) {
      this.#waiting.get(Number(id))?.(message);
      this.#waiting.delete(Number(id));
      return;
    }
    void this.handle(method, params).then(
      (result) => id !== undefined && this.#send({ id, result: result ?? {} }),
      (error: unknown) => {
        const code = error instanceof RpcError ? error.code : -32_603;
        const text = error instanceof Error ? error.message : String(error);
        if (id !== undefined) this.#send({ id, error: { code, message: text } });
      },
    );
  }

  #send(message: Message): void {
    this.streams.output.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
}
