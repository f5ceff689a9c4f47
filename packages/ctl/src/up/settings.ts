import { join } from 'node:path';
import { databaseConfig } from '@millrace/db/config';
import {
  daemonConfig,
  defaultConfigFile,
  ensureToken,
  type DaemonSettings,
} from '@millrace/daemon/config';
import { loadConfig, type LoadedConfig } from '@millrace/kit/config';
import { systemRandom } from '@millrace/kit/random';
import { queueConfig, type QueueSettings } from '@millrace/queue/config';
import { lineOf, tokenFile } from '../daemon/places.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where the parts are to listen; what is not named is left to their settings. */
export interface Addresses {
  dbGrpc?: string;
  dbHttp?: string;
  queueListen?: string;
  metricsListen?: string;
  listen?: string;
}

export interface UpOptions extends Addresses {
  /** False: neither the daemon nor the database asks for a token or a key. */
  auth?: boolean;
}

/** The settings with which the parts will start, as far as they concern one another. */
export interface Settings {
  /** Read by the database and the queue if they are there. */
  readonly files: { readonly db: string; readonly queue: string };
  readonly queue: QueueSettings;
  readonly daemon: LoadedConfig<DaemonSettings>;
  readonly daemonEnv: Environment;
  /** What callers of the daemon must show; undefined when it asks for none. */
  readonly daemonToken: string | undefined;
  /** Whether callers of the database must show a key. */
  readonly hasDatabaseKeys: boolean;
}

/**
 * How the command line finds a queue elsewhere. The daemon has settings of the same names, but here
 * it is to use the one that is started beside it.
 */
const otherPlaces = new Set(['MILLRACE_QUEUE_URL', 'MILLRACE_QUEUE_TOKEN']);

/**
 * A mistake in any of the files is told here, before anything runs. Makes the daemon's token, which
 * the queue must have as well.
 */
export function loadSettings(dataDir: string, options: UpOptions, env: Environment): Settings {
  const files = { db: join(dataDir, 'db.yaml'), queue: join(dataDir, 'queue.yaml') };
  const { values: queue } = loadConfig(queueConfig, {
    environment: env,
    defaultFile: files.queue,
    flags: { data: dataDir, listen: options.queueListen },
  });
  const { values: db } = loadConfig(databaseConfig, { environment: env, defaultFile: files.db });
  const entries = Object.entries(env).filter(([name]) => !otherPlaces.has(name));
  const daemonEnv = Object.fromEntries(entries);
  const daemon = loadConfig(daemonConfig, {
    environment: daemonEnv,
    defaultFile: defaultConfigFile(env),
    flags: {
      data: dataDir,
      listen: options.listen,
      ...(options.auth === false && { auth: 'none' }),
    },
  });
  ensureToken(daemon, dataDir, systemRandom);
  const needsToken = daemon.values.auth !== 'none';
  return {
    files,
    queue,
    daemon,
    daemonEnv,
    daemonToken: needsToken ? (daemon.values.token ?? lineOf(tokenFile(dataDir))) : undefined,
    hasDatabaseKeys: db.keys_file !== undefined,
  };
}
