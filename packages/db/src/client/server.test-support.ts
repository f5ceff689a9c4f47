import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig, type FlagValue } from '@millrace/kit/config';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { afterEach } from 'vitest';
import { databaseConfig } from '../server/base/config.js';
import { serveDatabase, type RunningDatabase } from '../server/server.js';
import { CuttingProxy } from './cutting-proxy.test-support.js';
import { connect, type ConnectOptions, type RemoteDatabase } from './index.js';

export interface TestServer extends RunningDatabase {
  readonly directory: string;
  /** `grpc://127.0.0.1:port` */
  readonly url: string;
  /** `unix:/...` */
  readonly socketUrl: string;
}

/** Servers, proxies and connections that are closed after each test. */
export function useServers() {
  const closing: (() => unknown)[] = [];
  const directories: string[] = [];

  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
    for (const directory of directories.splice(0)) {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  const makeDirectory = (): string => {
    const made = mkdtempSync(join(tmpdir(), 'millrace-client-'));
    directories.push(made);
    return made;
  };

  return {
    makeDirectory,
    async serve(flags: Record<string, FlagValue> = {}): Promise<TestServer> {
      const directory = typeof flags['data'] === 'string' ? flags['data'] : makeDirectory();
      const { values } = loadConfig(databaseConfig, {
        environment: {},
        flags: {
          grpc: '127.0.0.1:0',
          http: '127.0.0.1:0',
          data: directory,
          auth: flags['keys-file'] === undefined ? 'none' : 'keys',
          ...flags,
        },
      });
      const world = { clock: systemClock, random: systemRandom, log: silentLog };
      const server = await serveDatabase(values, world);
      closing.push(() => server.stop());
      const urlOf = (wanted: string) =>
        server.listeners.find(({ listener }) => listener === wanted)?.url ?? '';
      return { ...server, directory, url: urlOf('grpc'), socketUrl: urlOf('socket') };
    },
    async connect(url: string, options: ConnectOptions = {}): Promise<RemoteDatabase> {
      const database = await connect(url, options);
      closing.push(() => database.close());
      return database;
    },
    async proxy(url: string): Promise<CuttingProxy> {
      const proxy = await CuttingProxy.before(url);
      closing.push(() => proxy.close());
      return proxy;
    },
  };
}
