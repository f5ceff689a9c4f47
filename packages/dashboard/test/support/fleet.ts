import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { claudeLine, truth } from '../../../daemon/test/support/transcripts.js';
import {
  startDaemon,
  type TestDaemon,
  type TestOptions,
} from '../../../daemon/test/support/daemon.js';
import { installFakeAgent } from '../../../daemon/test/support/fake-agent.js';
import { FakeClis } from '../../../daemon/test/support/fake-clis.js';
import { FakeModel } from '../../../daemon/test/support/fake-ollama.js';
import {
  gitIdentity,
  gitIn,
  newRepo,
  removeSessions,
} from '../../../daemon/test/support/sessions.js';
import { buildDashboard } from '../../scripts/build.mjs';
import { TestBrowser, type OpenOptions, type WatchedPage } from '../browser.js';

const [hourMs, dayMs] = [3_600_000, 86_400_000];

export interface FleetOptions extends TestOptions {
  /** Adds transcripts, savings, providers and a local model, so that every page has data. */
  hasHistory?: boolean;
}

/** The built dashboard on a real daemon with agents, and a browser. */
export class Fleet {
  readonly workdir: string;
  readonly repo: string;

  private constructor(
    readonly daemon: TestDaemon,
    readonly browser: TestBrowser | undefined,
    private readonly helpers: readonly { close: () => unknown }[],
  ) {
    this.workdir = join(daemon.home, 'work');
    this.repo = join(daemon.home, 'mill');
  }

  static async start({ hasHistory = false, ...options }: FleetOptions = {}): Promise<Fleet> {
    const home = options.home ?? realpathSync(mkdtempSync(join(tmpdir(), 'mr-fleet-')));
    mkdirSync(join(home, 'work'), { recursive: true });
    const bin = join(home, 'bin');
    const clis = new FakeClis(bin);
    await installFakeAgent(bin, ['claude']);
    clis.addEmpty('gemini', 'cursor-agent');
    // A failed CI run.
    const runs = [{ workflowName: 'test', status: 'completed', conclusion: 'failure', url: null }];
    clis.add('gh', `console.log(${JSON.stringify(JSON.stringify(runs))});`);
    makeRepo(join(home, 'mill'));
    const helpers: { close: () => unknown }[] = [];
    // Nothing listens on port 9: servers at the default addresses of this machine must not count.
    const nowhere = 'http://127.0.0.1:9';
    const flags: Record<string, string> = { 'queue-url': nowhere, 'database-url': nowhere };
    if (hasHistory) {
      writeHistory(home);
      const provider = await startProvider();
      const model = await FakeModel.start({
        protocol: 'ollama',
        models: ['small'],
        answer: () => 'It waits for a person to allow a deletion.',
      });
      helpers.push(provider, { close: () => model.stop() });
      const { port } = provider.address() as AddressInfo;
      flags['providers-claude-url'] = `http://127.0.0.1:${port}/claude`;
      flags['providers-cursor-url'] = `http://127.0.0.1:${port}/cursor`;
      flags['backends-local-url'] = model.url;
    }
    const [browser] = await Promise.all([TestBrowser.start(), buildDashboard()]);
    const daemon = await startDaemon({
      ...options,
      home,
      path: `${bin}:${process.env['PATH']}`,
      environment: { ...gitIdentity, ...options.environment },
      flags: { ...flags, ...options.flags },
    });
    return new Fleet(daemon, browser, helpers);
  }

  async stop(): Promise<void> {
    await this.browser?.close();
    await removeSessions(this.daemon.api);
    await this.daemon.dispose();
    for (const helper of this.helpers) await helper.close();
  }

  open(path: string, options: OpenOptions = {}): Promise<WatchedPage> {
    return this.browser!.open(`${this.daemon.url}/#${path}`, options);
  }

  /** Waits until the agent has this status. */
  until(id: string, status: string): Promise<void> {
    return eventually(async () => {
      const session = await this.daemon.api.ok('GET', `/api/v1/sessions/${id}`);
      expect([session.status, session.status_reason]).toEqual([status, session.status_reason]);
    });
  }

  /** Opens a page, runs `act` on it, and fails when a problem was recorded. */
  async on(
    path: string,
    act: (page: WatchedPage['page'], watched: WatchedPage) => Promise<void>,
    options: OpenOptions = {},
  ): Promise<void> {
    const watched = await this.open(path, options);
    await act(watched.page, watched);
    await watched.close();
  }
}

/** Repeats a check until it passes; the timeout allows for a loaded machine. */
export function eventually<T>(check: () => Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 60_000, interval: 100 });
}

function makeRepo(path: string): void {
  const origin = `${path}-origin.git`;
  newRepo(path);
  gitIn(path, 'init', '--quiet', '--bare', '--initial-branch=main', origin);
  gitIn(path, 'remote', 'add', 'origin', origin);
  gitIn(path, 'push', '--quiet', 'origin', 'main');
  gitIn(path, 'remote', 'set-head', 'origin', 'main');
}

/** Thirty days of spend and savings. */
function writeHistory(home: string): void {
  const now = Date.now();
  const folder = join(home, '.claude', 'projects', '-nowhere-mill');
  mkdirSync(folder, { recursive: true });
  const lines = Array.from({ length: 30 }, (_, day) =>
    claudeLine(
      truth(`past-${day}`, {
        at: now - day * dayMs,
        cwd: day % 3 === 0 ? '/nowhere/race' : '/nowhere/mill',
        model: day % 2 === 0 ? 'claude-opus-4-5' : 'claude-sonnet-4-5',
        tokens: {
          input: 40_000 + 9000 * ((day * 7) % 11),
          output: 30_000 + 5000 * ((day * 5) % 7),
          cacheRead: 900_000,
          cacheWrite: 20_000,
          cacheWriteLong: 0,
        },
      }),
    ),
  );
  writeFileSync(join(folder, 'session-1.jsonl'), lines.join(''));
  const login = { claudeAiOauth: { accessToken: 'planted-login' } };
  writeFileSync(join(home, '.claude', '.credentials.json'), JSON.stringify(login));
  mkdirSync(join(home, '.config', 'cursor'), { recursive: true });
  const cursor = join(home, '.config', 'cursor', 'auth.json');
  writeFileSync(cursor, JSON.stringify({ accessToken: 'planted-login' }));
  writeSavings(home, now);
}

function writeSavings(home: string, now: number): void {
  const features = ['check', 'git', 'check', 'compact', 'llm_offload'];
  const entries = Array.from({ length: 200 }, (_, index) => {
    const feature = features[index % features.length]!;
    const raw = 4000 + 700 * ((index * 13) % 17);
    const isOffload = feature === 'llm_offload';
    const remaining = isOffload ? 0 : Math.round(raw / 9);
    return {
      ts: new Date(now - Math.round((index * index * hourMs) / 55)).toISOString(),
      feature,
      agent_id: null,
      repo: '/nowhere/mill',
      raw_bytes: raw * 4,
      kept_bytes: remaining * 4,
      raw_tokens: raw,
      kept_tokens: remaining,
      ...(isOffload && { output_tokens: 300 }),
      basis: 'HEURISTIC',
    };
  });
  mkdirSync(join(home, 'data', 'savings'), { recursive: true });
  const text = entries
    .toReversed()
    .map((entry) => `${JSON.stringify(entry)}\n`)
    .join('');
  writeFileSync(join(home, 'data', 'savings', 'ledger.jsonl'), text);
}

/** One provider that reports usage, and one that fails. */
async function startProvider(): Promise<Server> {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.url !== '/claude') response.statusCode = 503;
    const resets_at = new Date(Date.now() + 2.5 * hourMs).toISOString();
    response.end(JSON.stringify({ five_hour: { utilization: 42, resets_at } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
