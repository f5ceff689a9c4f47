import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { addressText, type Address } from '@millrace/kit/config';
import { lineOf, queueTokensFile } from '../base/places.js';
import type { Command } from './child.js';
import type { Credentials } from './credentials.js';
import { databaseKeyFile, secretsFile } from './own-files.js';
import { addressOfUrl, connectorsFile, type Listener, type Part } from './parts.js';
import type { Settings, UpOptions } from './settings.js';

/** Addresses of running or restarting servers. */
export type Places = (part: Part['name']) => readonly Listener[];

export interface PlanParts {
  readonly dataDir: string;
  readonly env: Command['env'];
  readonly addresses: UpOptions;
  readonly settings: Settings;
  readonly credentials: Credentials;
  /** Address of the daemon, with its port chosen. */
  readonly daemonAddress: Address;
  /** gRPC address of the queue. */
  readonly queueGrpc: Address;
}

const callbackPath = '/api/v1/queue/callback';

/** How to start each server so that it can reach the others. */
export class Plan {
  constructor(private readonly given: PlanParts) {}

  /** URL to which the queue sends tasks for agents. */
  get callbackUrl(): string {
    return `http://${addressText(nearby(this.given.daemonAddress))}${callbackPath}`;
  }

  commandFor(name: Part['name'], places: Places): Command {
    if (name === 'db') return this.#database(places);
    if (name === 'connect') return this.#connectors(places);
    return name === 'queue' ? this.#queue(places) : this.#daemon(places);
  }

  get #noUpgrade(): string[] {
    return this.given.addresses.upgrade === false ? ['--no-upgrade'] : [];
  }

  #connectors(places: Places): Command {
    const { dataDir, env, credentials } = this.given;
    const { ownerToken } = credentials;
    const socket = places('db').find(({ listener }) => listener === 'socket');
    return {
      args: [
        'connect',
        ...flag('--config', connectorsFile(dataDir)),
        ...flag('--metrics-listen', listenerOf(places('connect'), 'metrics')),
      ],
      env: {
        ...env,
        MILLRACE_DB_URL: socket?.url,
        MILLRACE_QUEUE_URL: urlOf(places('queue')),
        ...(ownerToken === undefined ? {} : { MILLRACE_QUEUE_TOKEN: ownerToken }),
      },
    };
  }

  #database(places: Places): Command {
    const { dataDir, env, addresses, settings } = this.given;
    return {
      args: [
        'db',
        'serve',
        ...flag('--data', join(dataDir, 'db')),
        ...flag('--config', ifThere(settings.files.db)),
        ...flag('--grpc', listenerOf(places('db'), 'grpc') ?? addresses.dbGrpc),
        ...flag('--http', listenerOf(places('db'), 'http') ?? addresses.dbHttp),
        ...this.#noUpgrade,
      ],
      env: addresses.auth === false ? { ...env, MILLRACE_DB_AUTH: 'none' } : env,
    };
  }

  #queue(places: Places): Command {
    const { dataDir, env, addresses, settings, queueGrpc } = this.given;
    const { tokens_file: tokens, secrets_file: secrets } = settings.queue;
    return {
      args: [
        'queue',
        'serve',
        ...flag('--data', dataDir),
        ...flag('--config', ifThere(settings.files.queue)),
        ...flag('--listen', listenerOf(places('queue'), 'http') ?? addresses.queueListen),
        ...flag(
          '--metrics-listen',
          listenerOf(places('queue'), 'metrics') ?? addresses.metricsListen,
        ),
        ...flag('--grpc', listenerOf(places('queue'), 'grpc') ?? addressText(queueGrpc)),
        ...flag('--tokens-file', tokens === undefined ? queueTokensFile(dataDir) : undefined),
        ...flag('--secrets-file', secrets === undefined ? secretsFile(dataDir) : undefined),
        ...flag('--extra-callback-allowlist', JSON.stringify(allowlistEntry(this.callbackUrl))),
        ...this.#noUpgrade,
      ],
      env,
    };
  }

  #daemon(places: Places): Command {
    const { dataDir, addresses, settings, credentials, daemonAddress } = this.given;
    const { daemonToken: queueToken, signingSecret } = credentials;
    const dbKey = lineOf(databaseKeyFile(dataDir)) ?? lineOf(join(dataDir, 'db', 'db.key'));
    const isOurs = (key: string) => settings.daemon.sourceOf(key).kind === 'default';
    return {
      args: [
        'daemon',
        'serve',
        ...flag('--data', dataDir),
        ...flag('--listen', addressText(daemonAddress)),
        ...flag('--queue-url', isOurs('queue.url') ? urlOf(places('queue')) : undefined),
        ...flag('--database-url', isOurs('database.url') ? urlOf(places('db')) : undefined),
        ...(addresses.auth === false ? ['--no-auth'] : []),
        ...this.#noUpgrade,
      ],
      // Secrets do not belong on the command line, where `ps` shows them.
      env: {
        ...settings.daemonEnv,
        ...(isOurs('queue.token') && queueToken ? { MILLRACE_QUEUE_TOKEN: queueToken } : {}),
        ...(isOurs('queue.callback_secret') && signingSecret
          ? { MILLRACE_QUEUE_CALLBACK_SECRET: signingSecret }
          : {}),
        ...(isOurs('database.api_key') && dbKey ? { MILLRACE_DATABASE_API_KEY: dbKey } : {}),
      },
    };
  }
}

function flag(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [name, value];
}

function ifThere(file: string): string | undefined {
  return existsSync(file) ? file : undefined;
}

function listenerOf(listeners: readonly Listener[], name: string): string | undefined {
  const found = listeners.find(({ listener }) => listener === name);
  return found && addressOfUrl(found.url);
}

function urlOf(listeners: readonly Listener[]): string | undefined {
  const found = listeners.find(({ listener }) => listener === 'http');
  if (!found) return undefined;
  const url = new URL(found.url);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const near = nearby({ host, port: Number(url.port) });
  return `${url.protocol}//${addressText(near)}`;
}

/** A server that listens on all interfaces listens on loopback too. */
function nearby({ host, port }: Address): Address {
  if (host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}

/** Allows this one URL to the queue, which otherwise calls nothing on this machine. */
function allowlistEntry(callbackUrl: string): object {
  const { hostname, port, pathname } = new URL(callbackUrl);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const networks = { 4: [`${host}/32`], 6: [`${host}/128`] }[isIP(host)] ?? [
    '127.0.0.0/8',
    '::1/128',
  ];
  return {
    scheme: 'http',
    host: hostname,
    port: Number(port || 80),
    path_prefix: pathname,
    networks,
  };
}
