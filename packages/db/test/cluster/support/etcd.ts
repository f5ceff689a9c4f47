import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { arch, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// etcd starts on other architectures than amd64 only when they are named.
const env = { ...process.env, ETCD_UNSUPPORTED_ARCH: arch() };

/** Whether the program is installed. */
export const hasEtcd = spawnSync('etcd', ['--version'], { env }).status === 0;

/** Files of a certificate authority, a server and a client. */
export interface EtcdTls {
  ca: string;
  cert: string;
  key: string;
  /** The certificate that clients must have; absent: none. */
  client?: { cert: string; key: string } | undefined;
}

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
    private readonly tls?: EtcdTls,
  ) {}

  get peerUrl(): string {
    return `http://127.0.0.1:${this.peerPort}`;
  }

  start(members: readonly EtcdMember[]): void {
    const { tls } = this;
    const url = `${tls ? 'https' : 'http'}://127.0.0.1:${this.port}`;
    const secure = tls && [
      `--cert-file=${tls.cert}`,
      `--key-file=${tls.key}`,
      ...(tls.client ? [`--trusted-ca-file=${tls.ca}`, '--client-cert-auth'] : []),
    ];
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
        '--bcrypt-cost=4',
        ...(secure ?? []),
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
      const answer = await this.post('/v3/kv/range', { key: 'AA==' }).catch(() => undefined);
      // With authentication the read is refused, but by a server that runs.
      if (answer?.status === 200 || answer?.status === 400) return;
      await sleep(100);
    }
    throw new Error(`etcd did not become ready: ${this.#stderr}`);
  }

  /** Calls the JSON gateway. */
  async post(path: string, body: object, token = ''): Promise<{ status: number; text: string }> {
    const { tls, port } = this;
    const files = tls && {
      ca: readFileSync(tls.ca),
      ...(tls.client && { cert: readFileSync(tls.client.cert), key: readFileSync(tls.client.key) }),
    };
    const headers = token === '' ? {} : { authorization: token };
    const options = { host: '127.0.0.1', port, path, method: 'POST', headers, ...files };
    return new Promise((resolve, reject) => {
      const request = (tls ? requestHttps : requestHttp)(
        { ...options, agent: false, signal: AbortSignal.timeout(5_000) },
        (response) => {
          let text = '';
          response.on('data', (bytes: Buffer) => (text += bytes.toString()));
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
        },
      );
      request.on('error', reject);
      request.end(JSON.stringify(body));
    });
  }
}

/** A real etcd of several servers on loopback. */
export async function startEtcd(
  count: number,
  tls?: EtcdTls,
): Promise<{
  members: readonly EtcdMember[];
  stop(): Promise<void>;
}> {
  const directory = mkdtempSync(join(tmpdir(), 'mr-etcd-'));
  const members: EtcdMember[] = [];
  for (let i = 0; i < count; i++) {
    members.push(new EtcdMember(`e${i}`, await freePort(), await freePort(), directory, tls));
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
