import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig, type FlagValue } from '@millrace/kit/config';
import { memoryLog, type MemoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { databaseConfig, serveDatabase, type RunningDatabase } from '@millrace/db/serve';

export interface TestServer extends RunningDatabase {
  /** `host:port` of gRPC. */
  readonly grpc: string;
  /** `http://host:port`. */
  readonly http: string;
  readonly socket: string;
  readonly data: string;
  readonly log: MemoryLog;
  /** Stops the server and removes its directory. */
  dispose(): Promise<void>;
}

/** A complete server in this process, on free ports and in its own directory. */
export async function startServer(
  flags: Readonly<Record<string, FlagValue>> = {},
  directory?: string,
): Promise<TestServer> {
  if (directory !== undefined) return serveIn(directory, flags);
  const data = mkdtempSync(join(tmpdir(), 'mr-db-'));
  try {
    return await serveIn(data, flags);
  } catch (error) {
    // A server that refuses to start leaves nothing.
    rmSync(data, { recursive: true, force: true });
    throw error;
  }
}

async function serveIn(
  data: string,
  flags: Readonly<Record<string, FlagValue>>,
): Promise<TestServer> {
  const log = memoryLog();
  const { values } = loadConfig(databaseConfig, {
    environment: {},
    // Shedding is off so that a busy machine does not fail tests; tests of shedding enable it.
    flags: {
      grpc: '127.0.0.1:0',
      http: '127.0.0.1:0',
      data,
      'shed-target-ms': '0',
      auth: flags['keys-file'] === undefined ? 'none' : 'keys',
      ...flags,
    },
  });
  const server = await serveDatabase(values, { clock: systemClock, random: systemRandom, log });
  const urlOf = (name: string) =>
    server.listeners.find(({ listener }) => listener === name)?.url ?? '';
  return {
    ...server,
    grpc: urlOf('grpc').replace(/^grpcs?:\/\//, ''),
    http: urlOf('http'),
    socket: urlOf('socket'),
    data,
    log,
    dispose: async () => {
      await server.stop();
      rmSync(data, { recursive: true, force: true });
    },
  };
}
