import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { memoryLog } from '@millrace/kit/log';
import type { UsageRow } from './adapter.js';
import type { DaemonSettings } from '../core/settings.js';
import { Usage } from './usage.js';

type ProviderSettings = DaemonSettings['providers'];

export interface ProviderCall {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

export interface FakeAnswer {
  status?: number;
  headers?: Record<string, string>;
  /** An object is sent as JSON, a text as it is. */
  body?: unknown;
  /** Never answers. */
  hang?: boolean;
}

/** A fake provider on loopback with configurable responses, which records requests. */
export class FakeProvider {
  readonly calls: ProviderCall[] = [];
  answer: FakeAnswer | ((call: ProviderCall) => FakeAnswer) = { body: {} };
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request: IncomingMessage, response) => {
      let body = '';
      request.setEncoding('utf8');
      request.on('data', (text: string) => (body += text));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        const call = { method, url, headers, body };
        this.calls.push(call);
        const answer = typeof this.answer === 'function' ? this.answer(call) : this.answer;
        if (answer.hang) return;
        const json = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
        response.writeHead(answer.status ?? 200, answer.headers).end(json);
      });
    });
  }

  static async start(): Promise<FakeProvider> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FakeProvider(server);
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

/** The system's clock, which a test can set forward. */
export class MovableClock implements Clock {
  #aheadMs = 0;
  now = () => systemClock.now() + this.#aheadMs;
  monotonic = () => systemClock.monotonic() + this.#aheadMs;
  after: Clock['after'] = (delayMs, run) => systemClock.after(delayMs, run);
  sleep: Clock['sleep'] = (delayMs, signal) => systemClock.sleep(delayMs, signal);

  move(byMs: number): void {
    this.#aheadMs += byMs;
  }
}

/** A home directory of its own with the logins a test puts there, a provider, and the usage. */
export class UsageBench {
  readonly home = mkdtempSync(join(tmpdir(), 'usage-'));
  readonly clock = new MovableClock();
  readonly log = memoryLog();
  readonly environment: Record<string, string> = { PATH: process.env['PATH'] ?? '' };
  rows: UsageRow[] = [];
  readonly #open: Usage[] = [];

  private constructor(readonly provider: FakeProvider) {}

  static async start(): Promise<UsageBench> {
    return new UsageBench(await FakeProvider.start());
  }

  get settings(): ProviderSettings {
    return {
      codex: { command: 'codex' },
      claude: { url: this.provider.url('/api/oauth/usage') },
      cursor: { url: this.provider.url('/aiserver.v1.DashboardService/GetCurrentPeriodUsage') },
      gemini: { url: this.provider.url('/v1internal:retrieveUserQuota') },
    };
  }

  /** A new usage with an empty memory. */
  usage(settings: Partial<ProviderSettings> = {}): Usage {
    const { clock, environment, home, log } = this;
    const providers = { ...this.settings, ...settings };
    const rows = async () => this.rows;
    const usage = new Usage({ clock, environment, home, log, providers, rows });
    this.#open.push(usage);
    return usage;
  }

  /** The refreshed entry of the backend `id`. */
  async entry(id: string, row: Partial<UsageRow> = {}, settings?: Partial<ProviderSettings>) {
    this.rows = [subscribed(id, row)];
    const { backends } = await this.usage(settings).read();
    if (backends.length !== 1) throw new Error(`${backends.length} entries instead of one`);
    return backends[0]!;
  }

  write(path: string, value: unknown): string {
    const file = join(this.home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value), { mode: 0o600 });
    return file;
  }

  /** A program `codex` that runs this script; `lines` and `say` are there for it. */
  codex(script: string): string {
    const file = this.write('bin/codex', `#!${process.execPath}\n${codexPrelude}\n${script}\n`);
    chmodSync(file, 0o755);
    return file;
  }

  /** What the program noted in its home, line by line. */
  noted(): string[] {
    return readFileSync(join(this.home, 'bin', 'noted'), 'utf8')
      .trim()
      .split('\n');
  }

  async stop(): Promise<void> {
    await Promise.all(this.#open.map((usage) => usage.close()));
    await this.provider.stop();
    rmSync(this.home, { recursive: true, force: true });
  }
}

const codexPrelude = `
const { appendFileSync } = require('node:fs');
const note = (text) => appendFileSync(require('node:path').join(__dirname, 'noted'), text + '\\n');
const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
const lines = (take) => {
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    note(line);
    take(JSON.parse(line));
  });
};
/** Greets as the real one does, and hands the question on. */
const serve = (answer) => lines((message) => {
  if (message.method === 'initialize') {
    say({ method: 'remoteControl/status/changed', params: { account: 'someone@example.com' } });
    say({ id: message.id, result: { userAgent: 'codex/1', codexHome: '/home/someone/.codex' } });
  }
  if (message.method === 'account/rateLimits/read') answer(message.id);
});
note('pid ' + process.pid);
note('args ' + process.argv.slice(2).join(' '));
`;

export function subscribed(id: string, row: Partial<UsageRow> = {}): UsageRow {
  return { id, tier: 'subscription', installed: true, enabled: true, binary_path: '', ...row };
}

/** `[scope, used_percent, resets_at]` of each window. */
export function figures(entry: {
  usage: readonly { scope: string; used_percent: number | null; resets_at: string | null }[];
}): [string, number | null, string | null][] {
  return entry.usage.map(({ scope, used_percent: used, resets_at: at }) => [scope, used, at]);
}

/** Resolves when no process has this id any more. */
export async function ended(pid: number, patienceMs = 60_000): Promise<void> {
  const end = systemClock.monotonic() + patienceMs;
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    if (systemClock.monotonic() > end) throw new Error(`process ${pid} is still there`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
