import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { openApiDocument } from '@millrace/contract/documents';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig } from '@millrace/kit/config';
import { schemasOf } from '@millrace/kit/http';
import { memoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { hashSecret } from '@millrace/kit/tokens';
import { queueConfig, serveQueue, type RunningQueue } from '@millrace/queue/serve';
import type { Lifecycle } from '../src/base/lifecycle.js';
import { run } from '../src/run.js';

/** Clear tokens, by the principal they stand for. */
export const tokens = {
  root: 'token-of-root',
  operator: 'token-of-operator',
  submitter: 'token-of-submitter',
} as const;

const grants = {
  root: [{ queue: '*', role: 'admin' }],
  operator: [{ queue: 'mail*', role: 'operator' }],
  submitter: [{ queue: 'mail*', role: 'submitter' }],
} as const;

export interface Received {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface RunOptions {
  env?: Record<string, string>;
  /** What comes by stdin. */
  input?: string | Buffer;
  /** Somebody is typing this. */
  typed?: string;
  columns?: number;
  /** Somebody is looking at stdout. */
  isScreen?: boolean;
  signal?: AbortSignal;
  /** Hears what is written to stdout as it comes. */
  onOut?: (text: string) => void;
  lifecycle?: Lifecycle;
}

export interface Ran {
  code: number;
  out: string;
  err: string;
  bytes: Buffer;
}

/** A real queue server in this process, with a handler that does what its name says. */
export class QueueServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'ctl-queue-'));
  readonly data = join(this.folder, 'data');
  readonly received: Received[] = [];
  readonly #handler = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      this.received.push({ headers: request.headers, body: Buffer.concat(chunks) });
      const { 'x-queue-handler-ref': ref, 'x-queue-attempt': attempt } = request.headers;
      const [status, text] = answerTo(String(ref), Number(attempt));
      response.writeHead(status, { 'content-type': 'text/plain' }).end(text);
    });
  });
  #running: RunningQueue | undefined;

  async start(): Promise<void> {
    this.#handler.listen(0, '127.0.0.1');
    await once(this.#handler, 'listening');
    this.write('tokens.yaml', {
      tokens: Object.entries(tokens).map(([who, token]) => ({
        id: who,
        principal: who,
        token_sha256: hashSecret(token),
        grants: grants[who as keyof typeof grants],
      })),
    });
    this.write('queue.yaml', {
      listen: '127.0.0.1:0',
      metrics_listen: '127.0.0.1:0',
      data: './data',
      tokens_file: 'tokens.yaml',
      drain_timeout_ms: 2000,
      callback_allowlist: [
        { scheme: 'http', host: '127.0.0.1', port: '*', networks: ['127.0.0.0/8'] },
      ],
    });
    await this.restart();
  }

  async restart(): Promise<void> {
    await this.#running?.stop();
    const flags = { config: join(this.folder, 'queue.yaml') };
    const { values } = loadConfig(queueConfig, { flags, environment: {} });
    const world = { clock: systemClock, random: systemRandom, log: memoryLog() };
    this.#running = await serveQueue(values, world);
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }

  async remove(): Promise<void> {
    await this.stop();
    this.#handler.closeAllConnections();
    this.#handler.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  url(listener = 'http'): string {
    const found = this.#running?.listeners.find((each) => each.listener === listener);
    if (!found) throw new Error(`the server has no listener ${listener}`);
    return found.url;
  }

  get handlerUrl(): string {
    return `http://127.0.0.1:${(this.#handler.address() as AddressInfo).port}/run`;
  }

  /** A file in the folder. */
  write(name: string, content: unknown): string {
    const file = join(this.folder, name);
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
    return file;
  }

  /** Makes a queue whose tasks get two quick attempts. */
  async makeQueue(name: string, more: Record<string, unknown> = {}): Promise<void> {
    const file = this.write(`${name}.json`, {
      callback: { url: this.handlerUrl },
      retry: { max_attempts: 2, initial_backoff_ms: 10 },
      circuit_breaker: { enabled: false },
      ...more,
    });
    await this.ok(['config', 'set', name, file]);
  }

  /** Runs `ctl queue ...` against the server as root, in this process. */
  ctl(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const env = {
      HOME: this.folder,
      ...(this.#running && { MILLRACE_QUEUE_URL: this.url() }),
      MILLRACE_QUEUE_TOKEN: tokens.root,
      ...options.env,
    };
    return runCtl(['queue', ...args], { ...options, env });
  }

  /** As `ctl`; fails when it failed. */
  async ok(args: readonly string[], options: RunOptions = {}): Promise<string> {
    const { code, out, err } = await this.ctl(args, options);
    if (code !== 0) throw new Error(`ctl queue ${args.join(' ')}: exit code ${code}: ${err}${out}`);
    return out;
  }

  /** As `ok`, with what it printed as JSON. */
  async json(args: readonly string[], options: RunOptions = {}): Promise<any> {
    return JSON.parse(await this.ok([...args, '--json'], options));
  }

  /** Submits tasks that die of their handler; their ids in the order of their deaths. */
  async bury(queue: string, handlers: readonly string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const handler of handlers) {
      const ended = await this.ctl(['submit', queue, handler, '--wait', '--json']);
      const { id, status } = JSON.parse(ended.out) as { id: string; status: string };
      if (status !== 'DEAD') throw new Error(`${id} is ${status}`);
      ids.push(id);
    }
    return ids;
  }
}

/** What a handler answers, by its name. */
function answerTo(ref: string, attempt: number): [status: number, text: string] {
  if (ref.startsWith('refuse')) return [404, 'no such mailbox'];
  if (ref.startsWith('break')) return [500, 'out of paper'];
  if (ref.startsWith('flaky') && attempt === 1) return [503, 'come again'];
  return [200, 'thanks'];
}

export async function runCtl(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { env = {}, columns, isScreen = false } = options;
  const pieces: Buffer[] = [];
  let err = '';
  const stdout = {
    isTTY: isScreen,
    columns: columns ?? 80,
    rows: 24,
    write: (piece: string | Uint8Array) => {
      pieces.push(Buffer.from(piece as string));
      options.onOut?.(piece.toString());
    },
  };
  const outside = {
    stdout,
    stderr: { write: (text: string) => (err += text) },
    stdin: stdinOf(options),
    env: { NO_COLOR: '1', ...(columns && { COLUMNS: String(columns) }), ...env },
  };
  const code = await run(args, outside, options.lifecycle ?? lifecycleOf(options.signal));
  const bytes = Buffer.concat(pieces);
  return { code, out: bytes.toString(), err, bytes };
}

function stdinOf({ input, typed }: RunOptions): Readable & { isTTY?: boolean } {
  if (typed === undefined) return Readable.from(input === undefined ? [] : [Buffer.from(input)]);
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  stdin.end(typed);
  return stdin;
}

function lifecycleOf(signal = new AbortController().signal): Lifecycle {
  return {
    interrupted: signal,
    serve: (work) => work(Promise.resolve()),
    onInterrupt: () => () => undefined,
    handOver: (work) => work(),
  };
}

const schemas = schemasOf(openApiDocument('queue'));

/** What is wrong with a value by the schema of this name in the contract: nothing, one hopes. */
export function faultsOf(schema: string, value: unknown): unknown[] {
  return schemas.named(schema).faults(value);
}
