import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, type Clock } from '@millrace/kit/clock';
import { memoryLog, type MemoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { hashSecret } from '@millrace/kit/tokens';
import { afterAll, onTestFinished } from 'vitest';
import type { QueueSettings } from '../../src/server/config.js';
import {
  startServer,
  type ServerDependencies,
  type RunningQueue,
} from '../../src/server/server.js';
import { openEmbeddedStore } from '../../src/storage/embedded/open.js';
import { MemoryStore } from './memory-store/index.js';
import type { TaskStore } from '../../src/storage/port/task-store.js';
import {
  httpClient,
  type SendRequest,
  type TestRequest,
  type TestResponse,
} from './http-client.js';
import { idleDelivery } from './idle-delivery.js';

/** Clear tokens, by the name of the principal they stand for. */
export const tokens = {
  root: 'token-of-root',
  admin: 'token-of-admin',
  operator: 'token-of-operator',
  submitter: 'token-of-submitter',
  worker: 'token-of-worker',
  stranger: 'token-of-stranger',
  nobody: 'token-of-nobody',
  expired: 'token-of-expired',
} as const;

export type Who = keyof typeof tokens;

const grants: Record<Who, { queue: string; role: string }[]> = {
  root: [{ queue: '*', role: 'admin' }],
  admin: [{ queue: 'mail*', role: 'admin' }],
  operator: [{ queue: 'mail*', role: 'operator' }],
  submitter: [{ queue: 'mail*', role: 'submitter' }],
  worker: [{ queue: 'mail*', role: 'worker' }],
  stranger: [{ queue: 'other*', role: 'admin' }],
  nobody: [],
  expired: [{ queue: '*', role: 'admin' }],
};

export const tokensYaml = JSON.stringify({
  tokens: Object.entries(tokens).map(([who, token]) => ({
    id: who,
    principal: who,
    token_sha256: hashSecret(token),
    grants: grants[who as Who],
    ...(who === 'expired' && { expires_at: '2020-01-01T00:00:00Z' }),
  })),
});

export const secretsYaml = JSON.stringify({
  secrets: [
    { name: 'mail-token', value: 'abc123', queues: ['mail*'] },
    { name: 'mail-basic', value: 'ada:secret', queues: ['mail*'] },
    { name: 'mail-signing', value: `whsec_${'A'.repeat(32)}`, queues: ['mail*'] },
    { name: 'other-token', value: 'xyz', queues: ['other.*'] },
  ],
});

/** A clock that can be put forward: the time of day, and apart from it the time since the start. */
export interface TestClock extends Clock {
  aheadMs: number;
  monotonicAheadMs: number;
}

export interface TestServer {
  url: string;
  metricsUrl: string;
  directory: string;
  store: TaskStore;
  clock: TestClock;
  log: MemoryLog;
  running: RunningQueue;
  /** Answers that the contract does not describe. */
  differences: string[];
  send: SendRequest;
  /** The same as someone, with root as the usual one. */
  as(who: Who | undefined, request: TestRequest): Promise<TestResponse>;
}

export interface TestOptions {
  settings?: Partial<QueueSettings>;
  store?: TaskStore;
  directory?: string;
  createDelivery?: ServerDependencies['createDelivery'];
  /** When the server stops; by default with the test. */
  onEnd?: OnEnd;
}

type OnEnd = (end: () => void | Promise<void>) => void;

/** When the test file ends, for what its hooks start: `afterAll` is ignored inside a hook. */
export function endWithFile(): OnEnd {
  const ends: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });
  return (end) => void ends.push(end);
}

export function newDirectory(onEnd: OnEnd = onTestFinished): string {
  const directory = mkdtempSync(join(tmpdir(), 'mr-queue-'));
  onEnd(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** The store of a real server, in a directory of its own. */
export function newEmbeddedStore(onEnd: OnEnd = onTestFinished): Promise<TaskStore> {
  const log = memoryLog();
  return openEmbeddedStore(newDirectory(onEnd), {
    clock: systemClock,
    random: systemRandom,
    log,
  });
}

export function testClock(): TestClock {
  const clock: TestClock = {
    ...systemClock,
    aheadMs: 0,
    monotonicAheadMs: 0,
    now: () => systemClock.now() + clock.aheadMs,
    monotonic: () => systemClock.monotonic() + clock.monotonicAheadMs,
  };
  return clock;
}

export function testSettings(directory: string): QueueSettings {
  writeFileSync(join(directory, 'tokens.yaml'), tokensYaml);
  writeFileSync(join(directory, 'secrets.yaml'), secretsYaml);
  const anyPort = { host: '127.0.0.1', port: 0 };
  return {
    listen: anyPort,
    grpc: undefined,
    metrics_listen: anyPort,
    data: join(directory, 'data'),
    upgrade: true,
    log_archive_interval: 10_000,
    storage: 'embedded',
    tokens_file: join(directory, 'tokens.yaml'),
    secrets_file: join(directory, 'secrets.yaml'),
    callback_allowlist: [
      { scheme: 'http', host: '127.0.0.1', port: '*', networks: ['127.0.0.0/8'] },
      { scheme: 'https', host: '*.example.org', path_prefix: '/hooks' },
    ],
    extra_callback_allowlist: [],
    principal_submit_per_second: 0,
    max_inflight: 1024,
    max_waiting_claims: 2_000,
    max_schedules: 1_000,
    max_schedule_bytes: 16 * 2 ** 20,
    shed_target_ms: 0,
    drain_timeout_ms: 5_000,
    max_connections: 1_000,
    max_peer_memory_bytes: 256 * 2 ** 20,
    warm_up_ms: undefined,
    access_log: 'off',
    log_level: undefined,
  };
}

/** A server on free ports that ends with the test. */
export async function startTestServer(options: TestOptions = {}): Promise<TestServer> {
  const { store = new MemoryStore(), onEnd = onTestFinished } = options;
  const { directory = newDirectory(onEnd) } = options;
  const clock = testClock();
  const log = memoryLog();
  const differences: string[] = [];
  const settings = { ...testSettings(directory), ...options.settings };
  const running = await startServer(
    settings,
    { clock, random: systemRandom, log },
    {
      openStore: () => Promise.resolve(store),
      createDelivery: options.createDelivery ?? idleDelivery,
      onUndocumentedResponse: (difference) => differences.push(difference),
    },
  );
  const [http, metrics] = running.listeners;
  const send = httpClient(http!.url);
  onEnd(async () => {
    send.close();
    await running.stop();
  });
  return {
    url: http!.url,
    metricsUrl: metrics!.url,
    directory,
    store,
    clock,
    log,
    running,
    differences,
    send,
    as: (who, request) => send({ ...request, token: who && tokens[who] }),
  };
}

export const plainConfig = { callback: { url: 'http://127.0.0.1:9000/run' } };

/** Makes a queue, with what is given over the plainest config. */
export async function makeQueue(
  server: TestServer,
  name = 'mail',
  config: Record<string, unknown> = {},
): Promise<void> {
  for (let tries = 1; ; tries++) {
    const answer = await server.as('root', {
      method: 'PUT',
      path: `/v1/admin/queues/${name}/config`,
      body: { ...plainConfig, ...config },
    });
    if (answer.status === 200) return;
    // On a busy machine a new connection to PostgreSQL may take longer than the server waits.
    if (answer.status !== 503 || tries === 5) throw new Error(`No queue ${name}: ${answer.text}`);
  }
}
