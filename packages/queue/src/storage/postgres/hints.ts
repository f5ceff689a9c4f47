import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { Client } from './client.js';
import { clientConfig } from './connections.js';
import { isAway } from './failures.js';

export interface HintsOptions {
  url: string;
  sessionName: string | undefined;
  clock: Clock;
  log: Log;
  /** Names this store among those on the database. */
  instance: string;
  heard: (queue: string) => void;
}

const channel = 'millrace_work';
const notHeard = 'hints of work from other servers are not heard';
/** Hints of so long go out together: the database takes one such message at a time. */
const gatherMs = 20;
const againMs = 2_000;
const pulseMs = 10_000;
/** The database takes messages of less than 8,000 bytes. */
const mostNames = 50;

/**
 * Tells the other servers which queues have got work, and hears it from them. Everything works
 * without, a second or two later: where the engine knows no NOTIFY, or while the connection is away.
 */
export class Hints {
  #client: Client | undefined;
  #names = new Set<string>();
  #sending: Timer | undefined;
  #next: Timer | undefined;
  #isClosed = false;
  #isSupported = true;

  constructor(private readonly options: HintsOptions) {}

  /** Resolves when it listens, or cannot. */
  async start(): Promise<void> {
    await this.#connect();
  }

  tell(queues: Iterable<string>): void {
    if (this.#isClosed || !this.#isSupported) return;
    for (const queue of queues) this.#names.add(queue);
    if (this.#names.size === 0) return;
    this.#sending ??= this.options.clock.after(gatherMs, () => this.#send());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#sending?.cancel();
    this.#next?.cancel();
    const client = this.#client;
    this.#client = undefined;
    if (client) await ended(client);
  }

  async #connect(): Promise<void> {
    if (this.#isClosed) return;
    const { log } = this.options;
    const client = this.#newClient();
    if (!client) return this.#connectLater();
    const lost = (error?: unknown) => {
      if (this.#client !== client && this.#client !== undefined) return;
      this.#client = undefined;
      void ended(client);
      if (error) log.debug({ err: error }, notHeard);
      this.#connectLater();
    };
    client.on('error', lost);
    client.on('end', () => this.#client === client && lost());
    client.on('notification', ({ payload }) => this.#hear(payload ?? ''));
    try {
      await client.connect();
    } catch (error) {
      return lost(error);
    }
    try {
      await client.query(`LISTEN ${channel}`);
    } catch (error) {
      if (isAway(error)) return lost(error);
      this.#isSupported = false;
      log.info({ err: error }, 'the database passes no hints on; servers look for work by time');
      await ended(client);
      return;
    }
    if (this.#isClosed) return void ended(client);
    this.#client = client;
    this.#pulse(client, lost);
  }

  /** Nothing where a file of the settings is gone for now, such as a certificate. */
  #newClient(): Client | undefined {
    try {
      const { url, sessionName } = this.options;
      return new Client(clientConfig(url, { sessionName }));
    } catch (error) {
      this.options.log.debug({ err: error }, notHeard);
      return undefined;
    }
  }

  #connectLater(): void {
    this.#next?.cancel();
    if (this.#isClosed) return;
    this.#next = this.options.clock.after(againMs, () => void this.#connect());
  }

  /** A connection that is dead without a word is found out. */
  #pulse(client: Client, lost: (error: unknown) => void): void {
    this.#next = this.options.clock.after(pulseMs, () => {
      if (this.#client !== client) return;
      client.query('SELECT 1').then(() => this.#pulse(client, lost), lost);
    });
  }

  #send(): void {
    this.#sending = undefined;
    const names = [...this.#names].slice(0, mostNames);
    this.#names.clear();
    const client = this.#client;
    if (!client) return;
    const message = [this.options.instance, ...names].join(' ');
    client.query('SELECT pg_notify($1, $2)', [channel, message]).catch((error: unknown) => {
      this.options.log.debug({ err: error }, 'a hint of work was lost');
    });
  }

  #hear(message: string): void {
    const [from, ...names] = message.split(' ');
    if (from === this.options.instance) return;
    for (const name of names) this.options.heard(name);
  }
}

/** What it was used for is over, however its end goes. */
async function ended(client: Client): Promise<void> {
  await client.end().catch(() => {});
}
