import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig, type FlagValue } from '@millrace/kit/config';
import { memoryLog, type MemoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { connect, type DatabaseStatus, type RemoteDatabase } from '@millrace/db/client';
import { databaseConfig, serveDatabase, type RunningDatabase } from '@millrace/db/serve';
import { afterEach, expect } from 'vitest';
import { CuttingProxy } from '../../../src/client/cutting-proxy.test-support.js';

export interface TestNode {
  readonly server: RunningDatabase;
  /** `grpc://127.0.0.1:port` */
  readonly url: string;
  readonly http: string;
  readonly data: string;
  readonly log: MemoryLog;
  readonly client: RemoteDatabase;
  /** A connection over the Unix socket, which needs neither key nor certificate. */
  local(): Promise<RemoteDatabase>;
  status(options?: { includeCollections: boolean }): Promise<DatabaseStatus>;
  stop(): Promise<void>;
}

type Flags = Readonly<Record<string, FlagValue>>;

/** Nodes in this process, on free ports and in their own directories, removed after each test. */
export function useNodes() {
  const closing: (() => unknown)[] = [];
  const directories: string[] = [];

  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
    for (const directory of directories.splice(0)) {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  const newDirectory = (): string => {
    const made = mkdtempSync(join(tmpdir(), 'mr-nodes-'));
    directories.push(made);
    return made;
  };

  const start = async (flags: Flags = {}, data = newDirectory()): Promise<TestNode> => {
    const log = memoryLog();
    const { values } = loadConfig(databaseConfig, {
      environment: {},
      flags: {
        grpc: '127.0.0.1:0',
        http: '127.0.0.1:0',
        data,
        // Shedding is off: a busy machine is not what is tested here.
        'shed-target-ms': '0',
        auth: flags['keys-file'] === undefined ? 'none' : 'keys',
        ...flags,
      },
    });
    const world = { clock: systemClock, random: systemRandom, log };
    const server = await serveDatabase(values, world);
    const urlOf = (name: string) =>
      server.listeners.find(({ listener }) => listener === name)?.url ?? '';
    const url = urlOf('grpc');
    const client = await connect(url, { timeoutMs: 10_000 });
    let stopping: Promise<void> | undefined;
    const stop = async () => {
      await client.close();
      await server.stop();
    };
    const node: TestNode = {
      server,
      url,
      http: urlOf('http'),
      data,
      log,
      client,
      local: async () => {
        const local = await connect(urlOf('socket'));
        closing.push(() => local.close());
        return local;
      },
      status: (options) => client.status(options),
      stop: () => (stopping ??= stop()),
    };
    closing.push(() => node.stop());
    return node;
  };

  return {
    newDirectory,
    start,
    /** A follower that has caught up. */
    async follow(leaderUrl: string, flags: Flags = {}, data?: string): Promise<TestNode> {
      const node = await start({ follow: leaderUrl, ...flags }, data);
      await streaming(node);
      return node;
    },
    async proxy(url: string): Promise<CuttingProxy> {
      const proxy = await CuttingProxy.before(url);
      closing.push(() => proxy.close());
      return proxy;
    },
    onClose: (close: () => unknown) => closing.push(close),
  };
}

const patience = { timeout: 60_000, interval: 20 };

/** Waits until the follower streams and has caught up. */
export async function streaming(node: TestNode): Promise<void> {
  const stateOf = async () => {
    const { state, lag } = await node.status();
    return { state, lag };
  };
  await expect.poll(stateOf, patience).toEqual({ state: 'streaming', lag: 0 });
}

/** Waits until the node has this commit on disk. */
export async function reached(node: TestNode, seq: number): Promise<void> {
  await expect
    .poll(() => node.server.database.core.durable.seq, patience)
    .toBeGreaterThanOrEqual(seq);
}

export async function inState(node: TestNode, state: string): Promise<void> {
  await expect.poll(async () => (await node.status()).state, patience).toBe(state);
}

/** Waits for a log line with this field. */
export async function logged({ log }: TestNode, name: string, value: unknown): Promise<void> {
  const has = ({ fields }: { fields: object }) =>
    (fields as Record<string, unknown>)[name] === value;
  await expect.poll(() => log.lines.some(has), patience).toBe(true);
}

/** Comparable dump of everything that two nodes must have in common. */
export function contentOf({ server: { database } }: TestNode) {
  const { seq, chain } = database.core.durable;
  const view = database.core.snapshot();
  try {
    const records = database.catalog.collections().flatMap(({ id, name }) =>
      Array.from(
        view.scan(id, {}, () => true),
        (record) => ({
          collection: name,
          id: record.id,
          key: record.key,
          rev: record.rev,
          seq: record.seq,
          createdAt: record.createdAt,
          updatedAt: record.updatedAt,
          expiresAt: record.expiresAt,
          data: record.data,
        }),
      ),
    );
    records.sort((a, b) => (`${a.collection}/${a.id}` < `${b.collection}/${b.id}` ? -1 : 1));
    return { seq, chain, records };
  } finally {
    view.done();
  }
}

/** Both nodes are intact and equal. */
export async function expectSame(a: TestNode, b: TestNode): Promise<void> {
  await reached(b, a.server.database.core.durable.seq);
  expect(contentOf(b)).toEqual(contentOf(a));
  for (const node of [a, b]) {
    expect((await node.server.database.verify()).problems).toEqual([]);
  }
}
