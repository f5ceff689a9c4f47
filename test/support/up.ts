import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCtl, type Ended, type Started } from '../../packages/ctl/test/run-ctl.js';
import { processes } from './processes.js';

export { processes } from './processes.js';

export const anyPorts = [
  'listen',
  'queue-listen',
  'queue-grpc',
  'metrics-listen',
  'db-grpc',
  'db-http',
].flatMap((name) => [`--${name}`, '127.0.0.1:0']);

interface UpEvent {
  event: string;
  component?: string;
  listener?: string;
  url?: string;
}

/** A `ctl up` under `--json`, and what it has told so far. */
export class Up {
  readonly events: UpEvent[] = [];
  readonly #started: Started;

  constructor(
    private readonly data: string,
    flags: readonly string[],
    isReported: boolean,
    more: Record<string, string> = {},
  ) {
    // At `info` the parts report their drain.
    const env = { HOME: data, MILLRACE_LOG: isReported ? 'info' : 'warn', ...more };
    this.#started = startCtl(['up', '--json', '--data', data, ...flags], env);
    let rest = '';
    this.#started.child.stdout.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      this.events.push(...lines.map((line) => JSON.parse(line) as UpEvent));
    });
  }

  get pid(): number {
    return this.#started.child.pid!;
  }

  get ended(): Promise<Ended> {
    return this.#started.ended;
  }

  async ready(): Promise<this> {
    await this.#started.says('"ready"');
    return this;
  }

  says(text: string): Promise<void> {
    return this.#started.says(text);
  }

  kill(signal: NodeJS.Signals): void {
    this.#started.child.kill(signal);
  }

  async stop(): Promise<Ended> {
    this.kill('SIGTERM');
    return this.ended;
  }

  url(component: string, listener = 'http'): string {
    const output = this.events.findLast(
      (event) => event.component === component && event.listener === listener,
    );
    if (output?.url === undefined) throw new Error(`${component} ${listener} is not announced`);
    return output.url;
  }

  /** The processes of the parts, by their names. */
  parts(): Map<string, number> {
    return new Map(
      processes().flatMap(({ pid, parent, line }): [string, number][] => {
        const name = / (db|queue|daemon|connect) (?:serve|--config) /.exec(line)?.[1];
        return parent === this.pid && name !== undefined ? [[name, pid]] : [];
      }),
    );
  }

  /** A call of the daemon with the token that it made. */
  daemon(path: string, init: RequestInit = {}): Promise<Response> {
    const token = readFileSync(join(this.data, 'daemon.token'), 'utf8').trim();
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    return fetch(`${this.url('daemon')}${path}`, { ...init, headers });
  }

  queue(path: string, method = 'GET', body?: object): Promise<Response> {
    const token = readFileSync(join(this.data, 'queue.token'), 'utf8').trim();
    return fetch(`${this.url('queue')}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  }

  async agentsConfig(): Promise<any> {
    return (await this.queue('/v1/admin/queues/agents/config')).json();
  }
}

export function areAlive(pids: Iterable<number>): number[] {
  const living = new Set(processes().map(({ pid }) => pid));
  return [...pids].filter((pid) => living.has(pid));
}

export const patient = { timeout: 90_000, interval: 100 };
