import { connect as dial } from 'node:net';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { messageOf, Refusal, systemCode } from '@millrace/kit/errors';
import type { RemoteDatabase, ServerAddress } from '@millrace/db/client';
import type { CtlCommand } from '../base/command.js';
import { lineOf } from '../base/places.js';
import { dataDirectory } from '../base/data-directory.js';
import { isLocalUrl } from '../base/urls.js';
import type { Server } from '../base/declared.js';
import type { Flags, Tools } from '../base/tools.js';
import { durationOf } from '../base/arguments.js';

/** Commands of the shell use its open connection. */
export interface DatabaseTools extends Tools {
  database?: RemoteDatabase;
}

/** What handlers of the database get; it is connected to when they first ask for it. */
export interface ConnectedTools extends DatabaseTools {
  connected(flags?: ConnectionFlags): Promise<RemoteDatabase>;
}

/** Options of every command that talks to a server. */
export type ConnectionFlags = Flags<'url key data timeout tlsCa tlsCert tlsKey'>;

type Environment = Readonly<Record<string, string | undefined>>;

const defaultUrl = 'grpc://127.0.0.1:5433';
const probeMs = 5_000;

/** Calls handlers with a connection, which ends with them. */
export function databaseServer(tools: DatabaseTools): Server {
  return {
    connect: tools.database ? null : withConnection,
    // The shell shows everything once.
    hasViews: tools.database === undefined,
    async run(handler, args, flags) {
      let opened: Promise<RemoteDatabase> | undefined;
      const connected = (given = flags) => (opened ??= open(tools, given));
      try {
        await (handler as (...given: unknown[]) => unknown)(...args, flags, {
          ...tools,
          connected,
        });
      } catch (error) {
        throw opened ? withHint(error, flags, tools.terminal.env) : error;
      } finally {
        if (!tools.database) await (await opened?.catch(() => undefined))?.close();
      }
    },
  };
}

function withConnection(command: CtlCommand): CtlCommand {
  return withTls(
    command
      .option(
        '--url <url>',
        'Address of the server: grpc://host:port (or host:port,host:port of a cluster), grpcs:// or unix:/path',
      )
      .option(
        '--key <key>',
        'API key, id.secret (default: $MILLRACE_DB_KEY, or db.key of a local data directory)',
      )
      .option('--data <dir>', 'Data directory of a local server, with its socket and key')
      .option('--timeout <duration>', 'Give up after this long (default: 30s)'),
  );
}

export function withTls(command: CtlCommand): CtlCommand {
  return command
    .option('--tls-ca <file>', 'Trust this certificate authority, for grpcs://')
    .option('--tls-cert <file>', 'Present this certificate, for grpcs://')
    .option('--tls-key <file>', 'Private key of the certificate');
}

/** Connects, runs and disconnects. */
export async function withDatabase<Result>(
  tools: Tools,
  flags: ConnectionFlags,
  run: (database: RemoteDatabase) => Promise<Result>,
): Promise<Result> {
  const database = await open(tools, flags);
  try {
    return await run(database);
  } catch (error) {
    throw withHint(error, flags, tools.terminal.env);
  } finally {
    await database.close();
  }
}

async function open(
  { terminal: { env }, database }: DatabaseTools,
  flags: ConnectionFlags,
): Promise<RemoteDatabase> {
  if (database) return database;
  const timeoutMs = durationOf(flags.timeout, '--timeout');
  const tls = await tlsOf(flags);
  const url = await findServer(flags, env);
  const { connect } = await import('@millrace/db/client');
  const key = flags.key ?? (env['MILLRACE_DB_KEY']?.trim() || ownerKey(url, flags, env));
  return connect(url, { key, timeoutMs, tls });
}

/**
 * Connects for a long-running command: a server at a given address need not be running yet, because
 * every call is retried.
 */
export async function openDatabase(
  flags: ConnectionFlags,
  env: Environment,
): Promise<RemoteDatabase> {
  const tls = await tlsOf(flags);
  const url = (flags.url ?? env['MILLRACE_DB_URL']) || (await findServer(flags, env));
  const { connect } = await import('@millrace/db/client');
  const key = flags.key ?? (env['MILLRACE_DB_KEY']?.trim() || ownerKey(url, flags, env));
  return connect(url, { key, tls });
}

/** The server does not know where its caller stores keys and certificates. */
function withHint(error: unknown, flags: ConnectionFlags, env: Environment): unknown {
  const hint = error instanceof Refusal ? hintFor(error, flags, env) : undefined;
  return hint === undefined ? error : new Refusal((error as Refusal).code, hint, { cause: error });
}

const howToName =
  'Set MILLRACE_DB_KEY, or name the data directory of a local server with --data DIR.';

function hintFor({ code, detail }: Refusal, flags: ConnectionFlags, env: Environment) {
  if (code === 'MISSING_KEY') return `The database needs an API key. ${howToName}`;
  const file =
    flags.key === undefined && !env['MILLRACE_DB_KEY']?.trim() && ownerKeyFile(flags, env);
  if (code === 'UNKNOWN_KEY' && file) {
    return `The key in ${file} is not one of this database. ${howToName}`;
  }
  if (!/\((?:\w+_CERT\w*|CERT_\w+|UNABLE_TO_\w+)\)/.test(detail)) return undefined;
  return `${detail}. Name the authority to trust with --tls-ca FILE, or in NODE_EXTRA_CA_CERTS.`;
}

/** The first address that accepts connections: local sockets before the network. */
async function findServer(flags: ConnectionFlags, env: Environment): Promise<string> {
  const given = flags.url ?? (flags.data === undefined ? env['MILLRACE_DB_URL'] : undefined);
  const sockets = socketUrls(flags.data, env);
  // With a named directory, only the database in that directory counts.
  const usual = flags.data === undefined ? [...sockets, defaultUrl] : sockets;
  const candidates = given ? [given] : usual;
  const failures: string[] = [];
  for (const url of candidates) {
    const failure = await probe(url);
    if (failure === undefined) return url;
    failures.push(`${url} (${failure})`);
  }
  throw new Refusal(
    'UNAVAILABLE',
    `no database answers at ${failures.join(', ')}. ` +
      'Start one with `ctl db serve` or `ctl up`, or name another with --url.',
  );
}

/** Sockets of local servers, in the named data directory or in the default ones. */
export function socketUrls(data: string | undefined, env: Environment): string[] {
  return dataDirectories(data, env).map((directory) => `unix:${join(directory, 'db.sock')}`);
}

function dataDirectories(data: string | undefined, env: Environment): string[] {
  const named = data ?? env['MILLRACE_DB_DATA'];
  const directories = named ? [named] : ['data', join(dataDirectory(undefined, env), 'db')];
  // `ctl up` has the database in a folder of its data directory.
  if (named && existsSync(join(named, 'db'))) directories.push(join(named, 'db'));
  return directories.map((directory) => resolve(directory));
}

/** The key that a local server created for its owner. The socket needs none. */
function ownerKey(url: string, flags: ConnectionFlags, env: Environment): string | undefined {
  // The key goes to every address of a cluster, so all of them must be local.
  const [scheme = '', hosts] = url.split('://');
  if (!/^grpcs?$/.test(scheme) || hosts === undefined) return undefined;
  const isLocal = (host: string) => isLocalUrl(`${scheme}://${host.replace(/^grpcs?:\/\//, '')}`);
  if (!hosts.split(',').every(isLocal)) return undefined;
  const file = ownerKeyFile(flags, env);
  return file === undefined ? undefined : lineOf(file);
}

function ownerKeyFile({ data }: ConnectionFlags, env: Environment): string | undefined {
  const files = dataDirectories(data, env).map((directory) => join(directory, 'db.key'));
  return files.find((file) => lineOf(file) !== undefined);
}

/** Why the address cannot be reached; undefined if it can. */
async function probe(url: string): Promise<string | undefined> {
  const { parseAddresses } = await import('@millrace/db/client');
  const failures: string[] = [];
  for (const { place, url: address } of parseAddresses(url)) {
    const failure = await dialed(place);
    if (failure === undefined) return undefined;
    failures.push(address === url ? failure : `${address}: ${failure}`);
  }
  return failures.join(', ');
}

async function dialed(place: ServerAddress['place']): Promise<string | undefined> {
  const socket = dial(place);
  try {
    await new Promise<void>((done, fail) => {
      socket.once('connect', done);
      socket.once('error', fail);
      socket.setTimeout(probeMs, () => fail(new Error('no answer')));
    });
    return undefined;
  } catch (error) {
    return reasonOf(error);
  } finally {
    socket.destroy();
  }
}

function reasonOf(error: unknown): string {
  switch (systemCode(error)) {
    case 'ECONNREFUSED':
      return 'nothing listens there';
    case 'ENOENT':
      return 'no such socket';
    case 'EACCES':
      return 'permission denied';
    case 'ENOTFOUND':
      return 'no such host';
    default:
      return messageOf(error);
  }
}

async function tlsOf({ tlsCa, tlsCert, tlsKey }: ConnectionFlags) {
  if (tlsCa === undefined && tlsCert === undefined && tlsKey === undefined) return undefined;
  const { readFile } = await import('node:fs/promises');
  const read = (file: string | undefined) => (file === undefined ? undefined : readFile(file));
  const [ca, certificate, key] = await Promise.all([read(tlsCa), read(tlsCert), read(tlsKey)]);
  return { ca, certificate, key };
}
