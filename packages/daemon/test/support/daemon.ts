import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@millrace/kit/clock';
import { loadConfig, type FlagValue } from '@millrace/kit/config';
import { memoryLog, type MemoryLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { daemonConfig, serveDaemon, type RunningDaemon } from '@millrace/daemon/serve';
import { expect } from 'vitest';
import { ApiClient } from './client.js';

/** Nothing listens at port 9 of this machine, so there is no local model unless a test makes one. */
export const noLocalModel = 'http://127.0.0.1:9';

/** Programs of their own, so they run as built. */
const built = (path: string) => fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));
const acpHost = built('acp-host/acp-main.js');
const permissionTool = built('permission-tool/permission-main.js');

export interface TestDaemon extends RunningDaemon {
  readonly url: string;
  readonly api: ApiClient;
  readonly log: MemoryLog;
  readonly home: string;
  /** Answers that the contract does not describe. */
  readonly undocumented: string[];
  /** Stops the daemon and removes its directory. Fails when it left the contract. */
  dispose(): Promise<void>;
}

export interface TestOptions {
  flags?: Readonly<Record<string, FlagValue>>;
  /** Where programs are looked for. */
  path?: string;
  /** The directory that holds data, config and home; a new one unless told. */
  home?: string;
  /** The daemon's own environment, beside HOME and PATH. */
  environment?: Readonly<Record<string, string>>;
}

/** A whole daemon in this process, on a free port and in directories of its own. */
export function startDaemon(options: TestOptions = {}): Promise<TestDaemon> {
  return inHome('mr-daemon-', options, serveIn);
}

/** Runs with the home of a daemon. A new one does not outlive a daemon that refuses to start. */
export async function inHome<Result>(
  prefix: string,
  options: TestOptions,
  start: (home: string, options: TestOptions) => Promise<Result>,
): Promise<Result> {
  if (options.home !== undefined) return start(options.home, options);
  const home = realpathSync(mkdtempSync(join(tmpdir(), prefix)));
  try {
    return await start(home, options);
  } catch (error) {
    rmSync(home, { recursive: true, force: true });
    throw error;
  }
}

async function serveIn(home: string, options: TestOptions): Promise<TestDaemon> {
  const log = memoryLog();
  const environment = { HOME: home, PATH: options.path ?? '', ...options.environment };
  const loaded = loadConfig(daemonConfig, {
    environment,
    defaultFile: join(home, 'config.yaml'),
    flags: {
      listen: '127.0.0.1:0',
      data: join(home, 'data'),
      'backends-local-url': noLocalModel,
      'drain-timeout-ms': '2000',
      // Access has tests of its own.
      ...(!options.flags?.['token'] && { auth: 'none' }),
      ...options.flags,
    },
  });
  const undocumented: string[] = [];
  const daemon = await serveDaemon(
    loaded,
    { clock: systemClock, random: systemRandom, log },
    {
      environment,
      acpHost,
      permissionTool,
      onUndocumentedResponse: (difference) => undocumented.push(difference),
    },
  );
  const { url } = daemon.listeners[0]!;
  return {
    ...daemon,
    url,
    api: new ApiClient(url),
    log,
    home,
    undocumented,
    dispose: async () => {
      await daemon.stop();
      rmSync(home, { recursive: true, force: true });
      expect(undocumented).toEqual([]);
      expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
    },
  };
}
