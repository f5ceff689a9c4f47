import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect, type RemoteDatabase } from '@millrace/db/client';
import { afterEach, expect } from 'vitest';

const ctl = fileURLToPath(new URL('../../../../../bin/ctl', import.meta.url));

/** A node as a process, with a stable port and directory across restarts. */
export class NodeProcess {
  readonly url: string;
  #child: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #stderr = '';

  constructor(
    readonly data: string,
    readonly port: number,
    private readonly flags: readonly string[],
  ) {
    this.url = `grpc://127.0.0.1:${port}`;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Resolves when it listens. */
  async start(...flags: string[]): Promise<void> {
    const own = [
      `--data=${this.data}`,
      `--grpc=127.0.0.1:${this.port}`,
      '--http=127.0.0.1:0',
      '--shed-target-ms=0',
      '--auth=none',
    ];
    const child = spawn(process.execPath, [ctl, 'db', 'serve', ...own, ...this.flags, ...flags], {
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    this.#child = child;
    let out = '';
    child.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
    child.stderr.on('data', (bytes: Buffer) => (this.#stderr += bytes.toString()));
    this.#ended = new Promise((resolve) => child.on('close', resolve));
    const isListening = () => out.includes('"listener":"grpc"') || child.exitCode !== null;
    await expect.poll(isListening, { timeout: 60_000, interval: 10 }).toBe(true);
    if (child.exitCode !== null) throw new Error(`It did not start: ${this.#stderr}`);
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#child?.kill(signal);
    await this.#ended;
    this.#child = undefined;
  }
}

export function useProcesses() {
  const processes: NodeProcess[] = [];
  const clients: RemoteDatabase[] = [];

  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
    for (const each of processes.splice(0)) {
      await each.end('SIGKILL');
      rmSync(each.data, { recursive: true, force: true });
    }
  });

  return {
    async make(...flags: string[]): Promise<NodeProcess> {
      const data = mkdtempSync(join(tmpdir(), 'mr-chaos-'));
      const made = new NodeProcess(data, await freePort(), flags);
      processes.push(made);
      return made;
    },
    async client(url: string): Promise<RemoteDatabase> {
      const client = await connect(url, { timeoutMs: 2_000, retry: false });
      clients.push(client);
      return client;
    },
  };
}

/** A free port. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
