import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from '../../src/storage/postgres/client.js';

/** A PostgreSQL of its own for a test file. */
export interface PostgresServer {
  port: number;
  /** The URL of a database on it, which is made if it is not there. */
  database(name: string): Promise<string>;
  /** Asks one of its databases. */
  sql(url: string, text: string): Promise<Record<string, unknown>[]>;
  stop(): Promise<void>;
  /** As when the machine loses its power. */
  crash(): Promise<void>;
  start(): Promise<void>;
  /** Stops it for good and removes its files. */
  remove(): Promise<void>;
}

const program = fileURLToPath(new URL('./programs/postgres.mjs', import.meta.url));

/** Not durable unless the test is about that: what a killed database loses is lost then. */
export async function startPostgres({ isDurable = false } = {}): Promise<PostgresServer> {
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
    database: async (name) => {
      const found = `SELECT 1 FROM pg_database WHERE datname = '${name}'`;
      if ((await sql(url('postgres'), found)).length === 0) {
        await sql(url('postgres'), `CREATE DATABASE "${name}"`);
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

async function closeClients(clients: Map<string, Client>): Promise<void> {
  const open = [...clients.values()];
  clients.clear();
  await Promise.allSettled(open.map((client) => client.end()));
}

/** Empties the tables, except for rows of the migrations. */
export const emptyTables = `
  TRUNCATE millrace.queues, millrace.gates, millrace.claimants, millrace.ledger, millrace.tasks,
    millrace.live, millrace.claims, millrace.ended, millrace.floors, millrace.wrecks,
    millrace.audit, millrace.secrets, millrace.transfers, millrace.records,
    millrace.history, millrace.history_totals, millrace.unique_keys;
  UPDATE millrace.audit_head SET seq = 0, hash = NULL`;
