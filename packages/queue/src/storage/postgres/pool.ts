import { StorageUnavailable } from '../task-store.js';
import type { Clock } from '@millrace/kit/clock';
import type { ClientConfig } from 'pg';
import { Client } from './client.js';

export interface PoolOptions {
  config: ClientConfig;
  most: number;
  clock: Clock;
  /** Called with each new connection, and with what ended one that nobody was using. */
  opened: (client: Client) => void;
  lost: (error: unknown) => void;
}

interface Waiter {
  resolve: (client: Client) => void;
  reject: (error: unknown) => void;
}

/** How long a caller waits for its turn at a connection. */
const mostWaitMs = 5_000;
const int8 = 20;

/** A few connections for many callers, each to one at a time. */
export class Pool {
  readonly #idle: Client[] = [];
  readonly #open = new Set<Client>();
  readonly #waiting = new Set<Waiter>();
  #size = 0;
  #isClosed = false;
  #whenEmpty: (() => void) | undefined;

  constructor(private readonly options: PoolOptions) {}

  async take(): Promise<Client> {
    if (this.#isClosed) throw new StorageUnavailable('The store was closed');
    const idle = this.#idle.pop();
    if (idle) return idle;
    if (this.#size < this.options.most) return this.#connect();
    return this.#wait();
  }

  give(client: Client, isBroken: boolean): void {
    if (isBroken || this.#isClosed || !this.#open.has(client)) return this.#drop(client);
    const [waiter] = this.#waiting;
    if (!waiter) return void this.#idle.push(client);
    this.#waiting.delete(waiter);
    waiter.resolve(client);
  }

  /** Those that nobody uses may be as dead as the one that was found to be. */
  dropIdle(): void {
    for (const client of this.#idle.splice(0)) this.#drop(client);
  }

  /** Resolves when all that is under way has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const empty = new Promise<void>((resolve) => (this.#whenEmpty = resolve));
    this.dropIdle();
    if (this.#size > 0) await empty;
  }

  async #connect(): Promise<Client> {
    this.#size++;
    const client = new Client(this.options.config);
    // Times and counts are far below 2^53.
    client.setTypeParser(int8, Number);
    client.on('error', (error) => {
      this.options.lost(error);
      this.#forget(client);
    });
    client.on('end', () => this.#forget(client));
    this.#open.add(client);
    try {
      await client.connect();
    } catch (error) {
      this.#drop(client);
      throw error;
    }
    this.options.opened(client);
    return client;
  }

  #wait(): Promise<Client> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        resolve: (client) => {
          timer.cancel();
          resolve(client);
        },
        reject: (error) => {
          timer.cancel();
          reject(error);
        },
      };
      const timer = this.options.clock.after(mostWaitMs, () => {
        this.#waiting.delete(waiter);
        reject(new StorageUnavailable(`No connection to PostgreSQL was free in ${mostWaitMs} ms`));
      });
      this.#waiting.add(waiter);
    });
  }

  /** It ended by itself: nobody is given it any more. */
  #forget(client: Client): void {
    const at = this.#idle.indexOf(client);
    if (at === -1) return void this.#open.delete(client);
    this.#idle.splice(at, 1);
    this.#drop(client);
  }

  #drop(client: Client): void {
    this.#open.delete(client);
    client.end().catch(() => {});
    this.#size--;
    const [waiter] = this.#waiting;
    if (waiter) {
      this.#waiting.delete(waiter);
      this.#connect().then(waiter.resolve, waiter.reject);
    }
    if (this.#size === 0) this.#whenEmpty?.();
  }
}
