import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { arch, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// etcd starts on other architectures than amd64 only when they are named.
const env = { ...process.env, ETCD_UNSUPPORTED_ARCH: arch() };

/** Whether the program is installed. */
export const hasEtcd = spawnSync('etcd', ['--version'], { env }).status === 0;

/** One server of etcd, which keeps its ports and directory when it is started again. */
export class EtcdMember {
  #child: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #stderr = '';

  constructor(
    private readonly name: string,
    readonly port: number,
    readonly peerPort: number,
    private readonly directory: string,
  ) {}

  get peerUrl(): string {
    return `http://127.0.0.1:${this.peerPort}`;
  }

  start(members: readonly EtcdMember[]): void {
    const url = `http://127.0.0.1:${this.port}`;
    const child = spawn(
      'etcd',
      [
        `--name=${this.name}`,
        `--data-dir=${join(this.directory, this.name)}`,
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        `--listen-peer-urls=${this.peerUrl}`,
        `--initial-advertise-peer-urls=${this.peerUrl}`,
        `--initial-cluster=${members.map((each) => `${each.name}=${each.peerUrl}`).join(',')}`,
        '--initial-cluster-token=millrace-test',
        '--log-level=error',
      ],
      { env, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    child.stderr.on('data', (bytes: Buffer) => (this.#stderr += bytes.toString()));
    this.#ended = new Promise((resolve) => child.on('close', resolve));
    this.#child = child;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child?.kill('SIGCONT');
    this.#child?.kill('SIGKILL');
    await this.#ended;
    this.#child = undefined;
  }

  /** Resolves when it answers a linearizable read. */
  async ready(): Promise<void> {
    for (let tries = 0; tries < 300; tries++) {
      if (typeof this.#child?.exitCode === 'number') throw new Error(`etcd ended: ${this.#stderr}`);
      const answer = await fetch(`http://127.0.0.1:${this.port}/v3/kv/range`, {
        method: 'POST',
        body: JSON.stringify({ key: 'AA==' }),
        signal: AbortSignal.timeout(1_000),
      }).catch(() => undefined);
      if (answer?.ok) return;
      await sleep(100);
    }
    throw new Error(`etcd did not become ready: ${this.#stderr}`);
  }
}

/** A real etcd of several servers on loopback. */
export async function startEtcd(count: number): Promise<{
  members: readonly EtcdMember[];
  stop(): Promise<void>;
}> {
  const directory = mkdtempSync(join(tmpdir(), 'mr-etcd-'));
  const members: EtcdMember[] = [];
  for (let i = 0; i < count; i++) {
    members.push(new EtcdMember(`e${i}`, await freePort(), await freePort(), directory));
  }
  for (const member of members) member.start(members);
  await Promise.all(members.map((member) => member.ready()));
  return {
    members,
    stop: async () => {
      await Promise.all(members.map((member) => member.kill()));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
