import type { Clock } from '@millrace/kit/clock';
import { systemCode } from '@millrace/kit/errors';
import { StorageUnavailable } from '../task-store.js';
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
  isOver: boolean;
  resolve: (client: Client) => void;
  reject: (error: unknown) => void;
}

/** How long a caller waits for its turn at a connection. */
const mostWaitMs = 5_000;
const int8 = 20;
const tooManyConnections = '53300';

/** A few connections for many callers, each to one at a time. */
export class Pool {
  readonly #idle: Client[] = [];
  readonly #open = new Set<Client>();
  #connecting = 0;
  readonly #waiting = new Set<Waiter>();
  #size = 0;
  #isClosed = false;
  #whenEmpty: (() => void) | undefined;

  constructor(private readonly options: PoolOptions) {}

  async take(): Promise<Client> {
    if (this.#isClosed) throw new StorageUnavailable('The store was closed');
    const idle = this.#idle.pop();
    if (idle) return idle;
    if (this.#size >= this.options.most) return this.#wait();
    try {
      return await this.#connect();
    } catch (error) {
      if (this.#othersServe(error)) return this.#wait();
      this.#serveNext();
      this.#tellIfEmpty();
      throw error;
    }
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
    // It throws where a file of the settings is gone.
    const client = new Client(this.options.config);
    this.#size++;
    this.#connecting++;
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
      this.#remove(client);
      throw error;
    } finally {
      this.#connecting--;
    }
    this.options.opened(client);
    return client;
  }

  #wait(): Promise<Client> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        isOver: false,
        resolve: (client) => {
          // One that was opened for somebody who has gone meanwhile is the next one's.
          if (waiter.isOver) return this.give(client, false);
          waiter.isOver = true;
          timer.cancel();
          resolve(client);
        },
        reject: (error) => {
          waiter.isOver = true;
          timer.cancel();
          reject(error);
        },
      };
      const timer = this.options.clock.after(mostWaitMs, () => {
        this.#waiting.delete(waiter);
        waiter.reject(
          new StorageUnavailable(`No connection to PostgreSQL was free in ${mostWaitMs} ms`),
        );
      });
      this.#join(waiter);
    });
  }

  #join(waiter: Waiter): void {
    const idle = this.#idle.pop();
    if (idle) waiter.resolve(idle);
    else if (!waiter.isOver) this.#waiting.add(waiter);
  }

  /** There is room for one more connection. */
  #serveNext(): void {
    const [waiter] = this.#waiting;
    if (!waiter) return;
    this.#waiting.delete(waiter);
    this.#connect().then(waiter.resolve, (error: unknown) => {
      if (this.#othersServe(error)) return this.#join(waiter);
      waiter.reject(error);
      this.#serveNext();
      this.#tellIfEmpty();
    });
  }

  /** Where the database has no place for one more, those that are open go round. */
  #othersServe(error: unknown): boolean {
    return systemCode(error) === tooManyConnections && this.#size > this.#connecting;
  }

  /** It ended by itself: nobody is given it any more. */
  #forget(client: Client): void {
    const at = this.#idle.indexOf(client);
    if (at === -1) return void this.#open.delete(client);
    this.#idle.splice(at, 1);
    this.#drop(client);
  }

  #drop(client: Client): void {
    this.#remove(client);
    this.#serveNext();
    this.#tellIfEmpty();
  }

  #remove(client: Client): void {
    this.#open.delete(client);
    client.end().catch(() => {});
    this.#size--;
  }

  #tellIfEmpty(): void {
    if (this.#size === 0) this.#whenEmpty?.();
  }
}
