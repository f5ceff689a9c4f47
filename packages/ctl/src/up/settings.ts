import { existsSync } from 'node:fs';
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
import { readConnectors } from '../connect/connectors-file.js';
import { lineOf, queueSettingsFile, tokenFile } from '../base/places.js';
import { connectorsFile } from './parts.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Addresses of the servers; missing ones come from their settings. */
export interface Addresses {
  dbGrpc?: string;
  dbHttp?: string;
  queueListen?: string;
  queueGrpc?: string;
  metricsListen?: string;
  listen?: string;
}

export interface UpOptions extends Addresses {
  /** False: neither the daemon nor the database requires a token or a key. */
  auth?: boolean;
  /** False: refuse data of an older version. */
  upgrade?: boolean;
}

/** The settings the servers will start with, as far as they affect each other. */
export interface Settings {
  /** Config files of the database and the queue, if they exist. */
  readonly files: { readonly db: string; readonly queue: string };
  readonly queue: QueueSettings;
  readonly daemon: LoadedConfig<DaemonSettings>;
  readonly daemonEnv: Environment;
  /** Token of the daemon; undefined if it requires none. */
  readonly daemonToken: string | undefined;
  /** Whether the database requires a key. */
  readonly hasDatabaseKeys: boolean;
}

/**
 * Variables with which the command line finds a queue elsewhere. The daemon has settings of the
 * same names, but here it must use the queue started beside it.
 */
const otherPlaces = new Set(['MILLRACE_QUEUE_URL', 'MILLRACE_QUEUE_TOKEN']);

/**
 * Reports a mistake in any of the files before anything is started. Creates the daemon's token,
 * which the queue needs too.
 */
export function loadSettings(dataDir: string, options: UpOptions, env: Environment): Settings {
  const files = { db: join(dataDir, 'db.yaml'), queue: queueSettingsFile(dataDir) };
  const { values: queue } = loadConfig(queueConfig, {
    environment: env,
    defaultFile: files.queue,
    flags: { data: dataDir, listen: options.queueListen, grpc: options.queueGrpc },
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
  if (existsSync(connectorsFile(dataDir))) readConnectors(connectorsFile(dataDir));
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
