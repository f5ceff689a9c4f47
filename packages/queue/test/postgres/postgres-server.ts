import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from '../../src/storage/postgres/connections.js';

/** A PostgreSQL, or databases of one that the test files of a worker share. */
export interface PostgresServer {
  port: number;
  /**
   * The URL of a database, which is made if it is not there, as a copy of another if that is named.
   * Other test files have others.
   */
  database(name: string, template?: string): Promise<string>;
  /** Asks one of its databases. */
  sql(url: string, text: string): Promise<Record<string, unknown>[]>;
  /** Closes the connection of `sql` to a database. */
  forget(url: string): Promise<void>;
  stop(): Promise<void>;
  /** As when the machine loses its power. */
  crash(): Promise<void>;
  start(): Promise<void>;
  /** Stops it for good and removes its files. */
  remove(): Promise<void>;
}

const program = fileURLToPath(new URL('./programs/postgres.mjs', import.meta.url));

/** Survives a test file: modules are loaded once for all files of a worker. */
let shared: Promise<PostgresServer> | undefined;
let users = 0;

/** Databases on the PostgreSQL of this worker. `remove` drops them. */
export async function startPostgres(): Promise<PostgresServer> {
  shared ??= ownPostgres({ isDurable: false });
  const server = await shared;
  const prefix = `file${++users}`;
  const made = new Set<string>();
  const refuse = async () => {
    throw new Error('Other test files use this PostgreSQL: use ownPostgres to stop one');
  };
  return {
    ...server,
    start: refuse,
    stop: refuse,
    crash: refuse,
    database: (name, template) => {
      made.add(`${prefix}_${name}`);
      return server.database(`${prefix}_${name}`, template && `${prefix}_${template}`);
    },
    remove: async () => {
      const admin = await server.database('postgres');
      for (const name of made) {
        await server.forget(await server.database(name));
        await server.sql(admin, `DROP DATABASE "${name}" WITH (FORCE)`);
      }
    },
  };
}

/** One that a test may stop. Not durable unless the test is about that. */
export async function ownPostgres({ isDurable = true } = {}): Promise<PostgresServer> {
  const child = spawn(process.execPath, [program, ...(isDurable ? ['--durable'] : [])], {
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`PostgreSQL ended: ${errors}`);
    return JSON.parse(value) as { port: number };
  };
  const act = async (word: string) => {
    await closeClients(clients);
    child.stdin.write(`${word}\n`);
    await next();
  };
  const clients = new Map<string, Client>();
  const { port } = await next();
  if (!isDurable) letGo(child);
  const url = (name: string) => `postgres://postgres:password@127.0.0.1:${port}/${name}`;
  const sql: PostgresServer['sql'] = async (at, text) => {
    let client = clients.get(at);
    if (!client) {
      client = new Client({ connectionString: at });
      client.on('error', () => clients.delete(at));
      await client.connect();
      clients.set(at, client);
    }
    const { rows } = await client.query(text);
    return rows as Record<string, unknown>[];
  };
  return {
    port,
    sql,
    forget: async (at) => {
      const client = clients.get(at);
      clients.delete(at);
      await client?.end();
    },
    database: async (name, template = 'template1') => {
      const found = `SELECT 1 FROM pg_database WHERE datname = '${name}'`;
      if ((await sql(url('postgres'), found)).length === 0) {
        await sql(url('postgres'), `CREATE DATABASE "${name}" TEMPLATE "${template}"`);
      }
      return url(name);
    },
    start: () => act('start'),
    stop: () => act('stop'),
    crash: () => act('crash'),
    remove: async () => {
      await closeClients(clients);
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

/** The worker may end while it runs; the program ends with its stdin. */
function letGo(child: ChildProcessWithoutNullStreams): void {
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as Socket).unref();
}

async function closeClients(clients: Map<string, Client>): Promise<void> {
  const open = [...clients.values()];
  clients.clear();
  await Promise.allSettled(open.map((client) => client.end()));
}

const tables = (
  'flow_rows flow_ends queues queue_locks claimants counters tasks live claims ended ' +
  'low_water_marks deleted_queues audit secrets transfers rows unique_keys'
).split(' ');

/** Empties the tables, except for rows of the migrations. TRUNCATE would make all files again. */
export const emptyTables = [
  ...tables.map((table) => `DELETE FROM millrace.${table}`),
  'UPDATE millrace.audit_head SET seq = 0, hash = NULL',
].join(';\n');
