import pg, { type ClientBase, type ClientConfig, type PoolClient, type QueryConfig } from 'pg';
import type { Clock } from '@millrace/kit/clock';
import { messageOf, systemCode } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import { StorageUnavailable } from '../port/task-store.js';
import type { Statement } from './statement.js';

export interface ConnectionsOptions {
  clock: Clock;
  random: Random;
  log: Log;
  /** Connections at most, besides the one that listens. */
  connections?: number | undefined;
  /** How long a statement may take. */
  statementTimeoutMs?: number | undefined;
  /** `application_name` of the sessions. */
  sessionName?: string | undefined;
}

/** Runs statements: a connection pool or a transaction. */
export interface Queryable {
  query<Row>(statement: Statement, values?: readonly unknown[]): Promise<Row[]>;
}

export interface Transaction extends Queryable {
  /**
   * The last statement: COMMIT is sent right behind it.
   */
  queryLast<Row>(statement: Statement, values?: readonly unknown[]): Promise<Row[]>;
  /** The commit and statements before it do not wait for this one, but fail with it. */
  queryLater(
    statement: Statement,
    values: readonly unknown[],
    use?: (rows: readonly unknown[]) => void,
  ): void;
}

export const serverSessions = 'millrace-queue';
const defaultConnections = 8;
const defaultStatementTimeoutMs = 5_000;
/** The driver waits this much longer than the server may take. */
const driverTimeoutMs = 1_000;
const connectTimeoutMs = 2_000;
const maxConflicts = 8;
/** Between two attempts to reach a database that is away. */
const reconnectMs = 250;
const begin: Statement = { name: '', text: 'BEGIN ISOLATION LEVEL READ COMMITTED' };
const commit: Statement = { name: '', text: 'COMMIT' };

/** Runs statements, retries conflicts, and fails fast while the database is away. */
export class Connections {
  #pool: Pool;
  /** Why the database is considered away; undefined while it is not. */
  #outage: { cause: unknown } | undefined;
  #isReconnecting = false;
  #reconnectAt = -Infinity;

  constructor(
    private readonly url: string,
    private readonly options: ConnectionsOptions,
  ) {
    this.#pool = this.#newPool();
  }

  /** One statement, one commit. */
  query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#trying((client) => rowsOf<Row>(client, statement, values));
  }

  /** One statement with a time limit. Undefined: it took longer and was cancelled. */
  queryWithin<Row>(
    limitMs: number,
    statement: Statement,
    values: readonly unknown[] = [],
  ): Promise<Row[] | undefined> {
    return this.#trying(async (client) => {
      const limit = { name: '', text: `SET LOCAL statement_timeout = ${limitMs}` };
      const before = [rowsOf(client, begin, []), rowsOf(client, limit, [])];
      const timeoutMs = limitMs + driverTimeoutMs;
      const result = rowsOf<Row>(client, { ...statement, timeoutMs }, values);
      const all = await Promise.allSettled([
        ...before,
        result,
        rowsOf(client, { ...commit, timeoutMs }, []),
      ]);
      const failed = all.find(({ status }) => status === 'rejected');
      if (!failed) return result;
      const { reason } = failed as PromiseRejectedResult;
      if (isTimeout(reason)) return undefined;
      throw reason;
    });
  }

  /** Runs `work` in a transaction. After a conflict it runs again, so it must only run statements. */
  transact<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return this.#trying(async (client) => {
      // Sent together with the first statement.
      const begun = rowsOf(client, begin, []);
      begun.catch(() => {});
      const transaction = new OpenTransaction(client);
      try {
        const result = await work(transaction);
        // After a failed statement this is a rollback.
        const committed = transaction.isOver ? undefined : rowsOf(client, commit, []);
        await Promise.all([begun, ...transaction.awaited, committed]);
        return result;
      } catch (error) {
        if (!isAway(error)) await rollBack(client);
        // What failed first says why; the statements behind it only failed with it.
        await Promise.all(transaction.awaited);
        throw error;
      }
    });
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  #newPool(): Pool {
    const { connections = defaultConnections, clock, log } = this.options;
    return new Pool({
      config: clientConfig(this.url, this.options),
      max: connections,
      clock,
      onConnect: (client) => void applySettings(client),
      onError: (error) => log.debug({ err: error }, 'connection lost'),
    });
  }

  async #trying<Result>(work: (client: ClientBase) => Promise<Result>): Promise<Result> {
    for (let conflicts = 0; ; conflicts++) {
      try {
        return await this.#once(work);
      } catch (error) {
        if (!isConflict(error)) throw error;
        if (conflicts >= maxConflicts) throw unavailable(error);
        const { clock, random } = this.options;
        await clock.sleep(2 ** conflicts * (1 + random.next()));
      }
    }
  }

  async #once<Result>(work: (client: ClientBase) => Promise<Result>): Promise<Result> {
    const client = this.#outage ? await this.#reconnect(this.#outage.cause) : await this.#connect();
    let isBroken = false;
    try {
      return await work(client);
    } catch (error) {
      isBroken = isAway(error);
      if (!isBroken) throw error;
      this.#lost(error);
      throw unavailable(error);
    } finally {
      client.release(isBroken);
    }
  }

  async #connect(): Promise<PoolClient> {
    try {
      return await this.#pool.connect();
    } catch (error) {
      // Without a free connection the database may still be there.
      if (!(error instanceof StorageUnavailable)) this.#lost(error);
      throw unavailable(error);
    }
  }

  /** Replaces all connections: idle ones may be as dead as the one that failed. */
  #lost(error: unknown): void {
    if (this.#outage || this.#pool.isClosed) return;
    this.#outage = { cause: error };
    this.#reconnectAt = this.options.clock.monotonic();
    const old = this.#pool;
    this.#pool = this.#newPool();
    old.abandon(unavailable(error));
  }

  /** One call at a time tries to connect; the others fail at once. */
  async #reconnect(cause: unknown): Promise<PoolClient> {
    const { clock } = this.options;
    if (this.#isReconnecting || clock.monotonic() < this.#reconnectAt) {
      const message = `PostgreSQL did not respond a moment ago: ${messageOf(cause)}`;
      throw new StorageUnavailable(message, { cause });
    }
    this.#isReconnecting = true;
    try {
      const client = await this.#pool.connect();
      this.#outage = undefined;
      return client;
    } catch (error) {
      this.#outage = { cause: error };
      throw unavailable(error);
    } finally {
      this.#reconnectAt = clock.monotonic() + reconnectMs;
      this.#isReconnecting = false;
    }
  }
}

class OpenTransaction implements Transaction {
  isOver = false;
  readonly awaited: Promise<unknown>[] = [];

  constructor(private readonly client: ClientBase) {}

  query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return rowsOf<Row>(this.client, statement, values);
  }

  queryLater(
    statement: Statement,
    values: readonly unknown[],
    use?: (rows: readonly unknown[]) => void,
  ): void {
    const later = this.query(statement, values).then(use);
    later.catch(() => undefined);
    this.awaited.push(later);
  }

  async queryLast<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    this.isOver = true;
    const result = rowsOf<Row>(this.client, statement, values);
    // After a failed statement this is a rollback.
    const committed = rowsOf(this.client, commit, []);
    committed.catch(() => {});
    const rows = await result;
    await committed;
    return rows;
  }
}

async function rowsOf<Row>(
  client: ClientBase,
  { name, text, rowMode, timeoutMs }: Statement,
  values: readonly unknown[],
): Promise<Row[]> {
  const query: QueryConfig & { rowMode?: string; query_timeout?: number } = {
    text,
    values: [...values],
  };
  if (timeoutMs) query.query_timeout = timeoutMs;
  if (name) query.name = name;
  if (rowMode) query.rowMode = rowMode;
  const { rows } = await client.query(query);
  return rows as Row[];
}

async function rollBack(client: ClientBase): Promise<void> {
  await client.query('ROLLBACK');
}

export function clientConfig(
  url: string,
  {
    statementTimeoutMs = defaultStatementTimeoutMs,
    sessionName = serverSessions,
  }: Pick<ConnectionsOptions, 'statementTimeoutMs' | 'sessionName'>,
): ClientConfig {
  const config: ClientConfig & { pipeline: boolean } = {
    connectionString: url,
    application_name: sessionName,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: statementTimeoutMs + driverTimeoutMs,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: statementTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // Send statements without waiting for the result of the one before.
    pipeline: true,
  };
  return config;
}

/**
 * Every statement finds a few rows by an index. The statistics of a queue's tables are always out of
 * date, so the planner would sometimes rather read all. A database that does not know a setting
 * refuses it, which does no harm.
 */
export const plannerSettings = [
  'enable_seqscan = off',
  'enable_bitmapscan = off',
  'enable_hashjoin = off',
  'enable_mergejoin = off',
  'jit = off',
  'plan_cache_mode = force_generic_plan',
];

async function applySettings(client: ClientBase): Promise<void> {
  await Promise.allSettled(plannerSettings.map((setting) => client.query(`SET ${setting}`)));
}

export interface PoolOptions {
  config: ClientConfig;
  max: number;
  clock: Clock;
  onConnect: (client: PoolClient) => void;
  onError: (error: unknown) => void;
}

/** How long a caller waits for a free connection. */
const maxWaitMs = 5_000;
const retryMs = 20;
const int8 = 20;
const tooManyConnections = '53300';

/** The driver's pool, with a limit for waiting that is apart from the one for connecting. */
export class Pool {
  readonly #pool: pg.Pool;
  readonly #abandoned: Promise<never>;
  #reject: (error: StorageUnavailable) => void = () => {};
  #closed: Promise<void> | undefined;

  constructor(private readonly options: PoolOptions) {
    const { config, max, onConnect, onError } = options;
    const { connectionTimeoutMillis } = config;
    this.#abandoned = new Promise((_, reject) => (this.#reject = reject));
    // Nobody may be waiting.
    this.#abandoned.catch(() => {});
    class Client extends pg.Client {
      constructor(own?: ClientConfig) {
        super({ ...own, connectionTimeoutMillis });
      }
    }
    const pool = { ...config, Client, max, connectionTimeoutMillis: maxWaitMs };
    this.#pool = new pg.Pool({ ...pool, idleTimeoutMillis: 0 });
    this.#pool.on('error', onError);
    this.#pool.on('connect', (client) => {
      // Without a listener an error of a connection in use would end the process.
      client.on('error', onError);
      // Times and counts are far below 2^53.
      client.setTypeParser(int8, Number);
      onConnect(client);
    });
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Throws `StorageUnavailable` when no connection becomes free; other errors are of the database. */
  async connect(): Promise<PoolClient> {
    const { clock } = this.options;
    for (const startedAt = clock.monotonic(); ;) {
      if (this.isClosed) throw new StorageUnavailable('The store was closed');
      try {
        return await this.#connectOnce();
      } catch (error) {
        const isOver = clock.monotonic() - startedAt >= maxWaitMs;
        const areAllInUse = this.#pool.totalCount >= this.options.max;
        if (isOver && areAllInUse) {
          throw new StorageUnavailable(`No connection to PostgreSQL was free in ${maxWaitMs} ms`);
        }
        // If the database accepts no more connections, those that are open are shared.
        const isFull = systemCode(error) === tooManyConnections && this.#pool.totalCount > 0;
        if (isOver || !isFull) throw error;
        await clock.sleep(retryMs);
      }
    }
  }

  /** Fails everyone who waits, and closes the connections without waiting for them. */
  abandon(reason: StorageUnavailable): void {
    this.#reject(reason);
    this.close().catch(this.options.onError);
  }

  /** Resolves when all connections were released. */
  close(): Promise<void> {
    this.#closed ??= this.#pool.end();
    return this.#closed;
  }

  async #connectOnce(): Promise<PoolClient> {
    const connecting = this.#pool.connect();
    try {
      return await Promise.race([connecting, this.#abandoned]);
    } catch (error) {
      // It may still connect, for nobody.
      connecting.then(
        (client) => client.release(true),
        () => {},
      );
      throw error;
    }
  }
}

/** Serialization failure or deadlock: the transaction can be tried again. */
export function isConflict(error: unknown): boolean {
  const code = systemCode(error);
  return code === '40001' || code === '40P01';
}

/** The statement was cancelled by its timeout. */
export function isTimeout(error: unknown): boolean {
  return systemCode(error) === '57014';
}

/** SQLSTATE or system code: away, full, starting, read only, too slow. */
const awayCodes = /^(?:(?:08|53|57|58|28)[0-9A-Z]{3}|25006|25P03|55P03|E[A-Z_]{3,})$/;
/** Errors of the driver have no code. */
const awayMessages = /connection|timeout|closed|terminated|not queryable/i;

/** The request is fine, but the database cannot serve it now. */
export function isAway(error: unknown): boolean {
  const code = systemCode(error);
  return code ? awayCodes.test(code) : awayMessages.test(messageOf(error));
}

export function unavailable(error: unknown): StorageUnavailable {
  if (error instanceof StorageUnavailable) return error;
  const message = `PostgreSQL does not respond: ${messageOf(error)}`;
  return new StorageUnavailable(message, { cause: error });
}

export const { Client } = pg;
export type Client = pg.Client;
