import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ctlHere, startCtl, type Ended, type Started } from './run-ctl.js';

/** A folder with a database server, started as people start it. */
export class DbServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'ctl-db-'));
  readonly data = join(this.folder, 'data');
  #running: Started | undefined;
  #urls = new Map<string, string>();

  /** Resolves when it listens. */
  async start(...flags: string[]): Promise<Started> {
    const ports = ['--grpc', '127.0.0.1:0', '--http', '127.0.0.1:0'];
    const args = ['db', 'serve', '--data', this.data, ...ports, ...flags];
    const started = startCtl(args, { MILLRACE_LOG: 'warn' }, { cwd: this.folder });
    this.#running = started;
    let out = '';
    started.child.stdout.on('data', (text: string) => (out += text));
    await started.says('"listener":"socket"');
    for (const line of out.trim().split('\n')) {
      const { listener, url } = JSON.parse(line) as { listener: string; url: string };
      this.#urls.set(listener, url);
    }
    return started;
  }

  url(listener: string): string {
    const url = this.#urls.get(listener);
    if (url === undefined) throw new Error(`the server has no listener ${listener}`);
    return url;
  }

  async stop(): Promise<Ended | undefined> {
    this.#running?.child.kill('SIGTERM');
    const ended = await this.#running?.ended;
    this.#running = undefined;
    return ended;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Runs `ctl db ...` beside the server, which it finds by its socket. */
  ctl(args: readonly string[], options: { env?: Record<string, string>; input?: string } = {}) {
    const { env = {}, input = '' } = options;
    return ctlHere(['db', ...args], env, { cwd: this.folder, input });
  }

  /** As `ctl`, with what it printed as JSON; fails when it failed. */
  async json(args: readonly string[], input?: string): Promise<any> {
    const ended = await this.ctl([...args, '--json'], input === undefined ? {} : { input });
    if (ended.code !== 0) throw new Error(`ctl db ${args.join(' ')}: ${ended.err}`);
    return JSON.parse(ended.out);
  }
}
