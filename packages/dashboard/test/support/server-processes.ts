import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hashSecret } from '@millrace/kit/tokens';

const ctl = fileURLToPath(new URL('../../../../bin/ctl', import.meta.url));
const anyPort = '127.0.0.1:0';

export type ServerName = 'daemon' | 'queue' | 'database';

/** Queue server, database and daemon as real processes, so that SIGSTOP can freeze each of them. */
export class ServerProcesses {
  readonly #folder = mkdtempSync(join(tmpdir(), 'mr-servers-'));
  readonly #children = new Map<ServerName, ChildProcess>();
  /** The address of the daemon. */
  url = '';

  async start(): Promise<void> {
    const token = 'token-of-the-liveness-test';
    const grants = [{ queue: '*', role: 'admin' }];
    const tokens = [{ id: 'root', principal: 'root', token_sha256: hashSecret(token), grants }];
    const tokensFile = join(this.#folder, 'tokens.yaml');
    writeFileSync(tokensFile, JSON.stringify({ tokens }));
    const data = (name: string) => join(this.#folder, name);
    const [queue, database] = await Promise.all([
      this.#serve('queue', 'queue', {
        listen: anyPort,
        'metrics-listen': anyPort,
        data: data('queue'),
        'tokens-file': tokensFile,
      }),
      this.#serve('database', 'db', {
        http: anyPort,
        grpc: anyPort,
        data: data('db'),
        auth: 'none',
      }),
    ]);
    this.url = await this.#serve('daemon', 'daemon', {
      listen: anyPort,
      'data-dir': data('daemon'),
      auth: 'none',
      'queue-url': queue,
      'queue-token': token,
      'database-url': database,
      'backends-local-url': 'http://127.0.0.1:9',
    });
  }

  signal(name: ServerName, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#children.get(name)!.kill(signal);
  }

  stop(): void {
    for (const child of this.#children.values()) child.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Resolves with its address when it listens. */
  #serve(name: ServerName, part: string, flags: Record<string, string>): Promise<string> {
    const args = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]);
    const child = spawn(process.execPath, [ctl, part, 'serve', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.#folder,
      env: { PATH: process.env['PATH'], HOME: this.#folder },
    });
    this.#children.set(name, child);
    let [out, log] = ['', ''];
    child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
    return new Promise((resolve, reject) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        out += text;
        const url = /"listener":"http","url":"([^"]+)"/.exec(out)?.[1];
        if (url !== undefined) resolve(url);
      });
      child.on('exit', (code) => reject(new Error(`ctl ${part} serve ended with ${code}: ${log}`)));
    });
  }
}
