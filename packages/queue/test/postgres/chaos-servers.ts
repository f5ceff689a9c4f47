import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { httpClient, type TestResponse, type TestRequest } from '../support/http-client.js';
import { tokens, tokensYaml } from '../support/server.js';

const program = fileURLToPath(new URL('./programs/serve-at.mjs', import.meta.url));

/** A server as a process of its own, that can be killed and started again. */
export class ChaosServer {
  #child: ChildProcess | undefined;
  #client: ReturnType<typeof httpClient> | undefined;
  /** What it said on stderr. */
  said = '';

  constructor(
    private readonly home: string,
    storage: string,
    private readonly aheadMs: number,
  ) {
    writeFileSync(join(home, 'tokens.yaml'), tokensYaml);
    const allowed = '{scheme: http, host: 127.0.0.1, port: "*", networks: [127.0.0.0/8]}';
    const lines = [
      'listen: 127.0.0.1:0',
      'metrics_listen: 127.0.0.1:0',
      'data: ./data',
      `storage: ${storage}`,
      'tokens_file: tokens.yaml',
      'shed_target_ms: 0',
      `callback_allowlist: [${allowed}]`,
    ];
    writeFileSync(join(home, 'queue.yaml'), `${lines.join('\n')}\n`);
  }

  get isUp(): boolean {
    return this.#client !== undefined;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [program, join(this.home, 'queue.yaml')], {
      env: { ...process.env, NODE_OPTIONS: '', CLOCK_AHEAD_MS: String(this.aheadMs) },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    child.stderr.on('data', (text: Buffer) => (this.said += text.toString()));
    const url = await new Promise<string>((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (bytes: Buffer) => {
        text += bytes.toString();
        if (text.includes('\n')) resolve(text.split('\n')[0]!);
      });
      child.on('exit', () => reject(new Error(`The server ended: ${this.said.slice(-2_000)}`)));
    });
    this.#client = httpClient(url);
  }

  /** As someone who may do everything. Rejects when the server is not there. */
  send(request: TestRequest): Promise<TestResponse> {
    if (!this.#client) return Promise.reject(new Error('the server is down'));
    return this.#client({ ...request, token: tokens.root });
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    this.#client?.close();
    this.#client = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, 'exit');
  }
}
