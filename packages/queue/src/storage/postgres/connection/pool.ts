import type { Clock } from '@millrace/kit/clock';
import { systemCode } from '@millrace/kit/errors';
import pg, { type ClientConfig, type PoolClient } from 'pg';
import { StorageUnavailable } from '../../port/task-store.js';

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
