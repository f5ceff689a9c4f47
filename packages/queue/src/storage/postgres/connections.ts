import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import type { Client, ClientConfig, QueryConfig } from 'pg';
import { StorageUnavailable } from '../task-store.js';
import { isAway, isConflict, isGivenUp, unavailable } from './failures.js';
import { Pool } from './pool.js';
import type { Statement } from './statement.js';

export interface ConnectionsOptions {
  clock: Clock;
  random: Random;
  log: Log;
  /** Connections at most, beside the one that listens. */
  connections?: number | undefined;
  /** How long a statement may take, on either side. */
  statementTimeoutMs?: number | undefined;
  /** What the sessions are called in the database. */
  sessionName?: string | undefined;
}

/** What a statement or a transaction is asked through. */
export interface Asking {
  ask<Row>(statement: Statement, values?: readonly unknown[]): Promise<Row[]>;
}

/** One transaction. */
export interface Transaction extends Asking {
  /**
   * The last statement: the commit is sent right behind it. What is asked after that is answered
   * when the commit is done, and no part of it.
   */
  askLast<Row>(statement: Statement, values?: readonly unknown[]): Promise<Row[]>;
}

export const serverSessions = 'millrace-queue';
const usualConnections = 8;
const usualStatementTimeoutMs = 5_000;
const connectTimeoutMs = 2_000;
const mostConflicts = 8;
/** Between two tries to reach a database that is away. */
const restMs = 250;
const begin: Statement = { name: '', text: 'BEGIN ISOLATION LEVEL READ COMMITTED' };
const commit: Statement = { name: '', text: 'COMMIT' };

/** Connections to the database, and what to do when there are none to be had. */
export class Connections {
  readonly #pool: Pool;
  /** Why the database is taken to be away; undefined while it is not. */
  #trouble: { cause: unknown } | undefined;
  #isTrying = false;
  #tryAt = -Infinity;

  constructor(
    url: string,
    private readonly options: ConnectionsOptions,
  ) {
    const { connections = usualConnections, clock, log } = options;
    this.#pool = new Pool({
      config: clientConfig(url, options),
      most: connections,
      clock,
      opened: (client) => void prepare(client),
      lost: (error) => log.debug({ err: error }, 'a connection to PostgreSQL was lost'),
    });
  }

  /** One statement, one commit. */
  ask<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#trying((client) => rowsOf<Row>(client, statement, values));
  }

  /** One statement that only reads. Undefined: it took longer than it may, and was given up. */
  askWithin<Row>(
    limitMs: number,
    statement: Statement,
    values: readonly unknown[] = [],
  ): Promise<Row[] | undefined> {
    return this.#trying(async (client) => {
      const limit = { name: '', text: `SET LOCAL statement_timeout = ${limitMs}` };
      const before = [rowsOf(client, begin, []), rowsOf(client, limit, [])];
      const asked = rowsOf<Row>(client, statement, values);
      const all = await Promise.allSettled([...before, asked, rowsOf(client, commit, [])]);
      const failed = all.find(({ status }) => status === 'rejected');
      if (!failed) return asked;
      const { reason } = failed as PromiseRejectedResult;
      if (isGivenUp(reason)) return undefined;
      throw reason;
    });
  }

  /** All or nothing. `work` may run again from its beginning, so it must only ask. */
  transact<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return this.#trying(async (client) => {
      // Sent with the first statement: nobody waits for it.
      const begun = rowsOf(client, begin, []);
      begun.catch(() => {});
      const transaction = new OpenTransaction(client);
      try {
        const result = await work(transaction);
        await begun;
        if (!transaction.isOver) await rowsOf(client, commit, []);
        return result;
      } catch (error) {
        if (!isAway(error)) await rollBack(client);
        throw error;
      }
    });
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  async #trying<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    for (let conflicts = 0; ; conflicts++) {
      try {
        return await this.#once(work);
      } catch (error) {
        if (!isConflict(error)) throw error;
        if (conflicts >= mostConflicts) throw unavailable(error);
        const { clock, random } = this.options;
        await clock.sleep(2 ** conflicts * (1 + random.next()));
      }
    }
  }

  async #once<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    const client = this.#trouble ? await this.#tryAgain(this.#trouble.cause) : await this.#take();
    let isBroken = false;
    try {
      return await work(client);
    } catch (error) {
      isBroken = isAway(error);
      if (!isBroken) throw error;
      this.#lost(error);
      throw unavailable(error);
    } finally {
      this.#pool.give(client, isBroken);
    }
  }

  async #take(): Promise<Client> {
    try {
      return await this.#pool.take();
    } catch (error) {
      // It may only be that all are in use.
      if (!(error instanceof StorageUnavailable)) this.#lost(error);
      throw unavailable(error);
    }
  }

  /** The next call finds out whether it was only this connection. */
  #lost(error: unknown): void {
    if (this.#trouble) return;
    this.#trouble = { cause: error };
    this.#tryAt = this.options.clock.monotonic();
    this.#pool.dropIdle();
  }

  /** One call at a time tries to connect; the others are told at once. */
  async #tryAgain(cause: unknown): Promise<Client> {
    const { clock } = this.options;
    if (this.#isTrying || clock.monotonic() < this.#tryAt) {
      const message = `PostgreSQL did not answer a moment ago: ${messageOf(cause)}`;
      throw new StorageUnavailable(message, { cause });
    }
    this.#isTrying = true;
    try {
      const client = await this.#pool.take();
      this.#trouble = undefined;
      return client;
    } catch (error) {
      this.#trouble = { cause: error };
      throw unavailable(error);
    } finally {
      this.#tryAt = clock.monotonic() + restMs;
      this.#isTrying = false;
    }
  }
}

class OpenTransaction implements Transaction {
  isOver = false;

  constructor(private readonly client: Client) {}

  ask<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return rowsOf<Row>(this.client, statement, values);
  }

  async askLast<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    this.isOver = true;
    const asked = rowsOf<Row>(this.client, statement, values);
    // Behind a failed statement the database takes it for a rollback.
    const committed = rowsOf(this.client, commit, []);
    committed.catch(() => {});
    const rows = await asked;
    await committed;
    return rows;
  }
}

async function rowsOf<Row>(
  client: Client,
  { name, text, rowMode }: Statement,
  values: readonly unknown[],
): Promise<Row[]> {
  const query: QueryConfig & { rowMode?: string } = { text, values: [...values] };
  if (name) query.name = name;
  if (rowMode) query.rowMode = rowMode;
  const { rows } = await client.query(query);
  return rows as Row[];
}

async function rollBack(client: Client): Promise<void> {
  await client.query('ROLLBACK');
}

export function clientConfig(
  url: string,
  {
    statementTimeoutMs = usualStatementTimeoutMs,
    sessionName = serverSessions,
  }: Pick<ConnectionsOptions, 'statementTimeoutMs' | 'sessionName'>,
): ClientConfig {
  const config: ClientConfig & { pipeline: boolean } = {
    connectionString: url,
    application_name: sessionName,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: statementTimeoutMs + 1_000,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: statementTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // Statements are sent one behind the other, without waiting for each answer.
    pipeline: true,
  };
  return config;
}

/**
 * Every statement goes from a few rows to others by an index; the planner, whose figures on a queue's
 * tables are always out of date, would sometimes rather read all. Engines that do not know a setting
 * refuse it and are none the worse.
 */
const settings = [
  'enable_seqscan = off',
  'enable_bitmapscan = off',
  'enable_hashjoin = off',
  'enable_mergejoin = off',
  'jit = off',
  'plan_cache_mode = force_generic_plan',
];

async function prepare(client: Client): Promise<void> {
  await Promise.allSettled(settings.map((setting) => client.query(`SET ${setting}`)));
}
