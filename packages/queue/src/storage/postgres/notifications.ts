import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { Client, clientConfig, isAway } from './connections.js';
import { statement } from './statement.js';

export interface NotificationsOptions extends NotificationListeners {
  url: string;
  sessionName: string | undefined;
  clock: Clock;
  log: Log;
  /** Identifies this server among those on the database. */
  instance: string;
}

export interface NotificationListeners {
  /** A queue has new work. */
  onWork: (queue: string) => void;
  /** A task of the queue ended, and its slot of `max_in_flight` is free. */
  onSlotFreed: (queue: string) => void;
  /** A task that was in flight was cancelled. */
  onCancelled: (id: string) => void;
}

export const channels = {
  work: 'millrace_work',
  slots: 'millrace_slots',
  cancelled: 'millrace_cancelled',
} as const;
const listenFailed = 'failed to listen for work of other servers';
/**
 * Minimum time between two notifications of a channel: NOTIFY takes a lock on the whole database.
 * The first after a pause is sent at once, so that a task of another server waits no longer than
 * this.
 */
const intervalMs = 4;
const reconnectMs = 2_000;
const keepaliveMs = 10_000;
/** A notification has at most 8,000 bytes. */
const maxNames = 50;

/**
 * Notifies other servers of queues that have new work, by LISTEN and NOTIFY. Nothing depends on it:
 * without, servers find the work a second or two later.
 */
export class Notifications {
  #client: Client | undefined;
  readonly #work = new Outbox(channels.work);
  readonly #slots = new Outbox(channels.slots);
  #next: Timer | undefined;
  #isClosed = false;
  #isSupported = true;

  constructor(private readonly options: NotificationsOptions) {}

  /** Resolves when it listens, or cannot. */
  async start(): Promise<void> {
    await this.#connect();
  }

  /** These queues have new work. */
  send(queues: Iterable<string>): void {
    this.#add(this.#work, queues);
  }

  /** Tasks of these queues ended. */
  sendSlotsFreed(queues: Iterable<string>): void {
    this.#add(this.#slots, queues);
  }

  /** At once: the callback of the task runs on until then. */
  sendCancelled(id: string): void {
    if (this.#client) this.#post(this.#client, channels.cancelled, [id]);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { interval } of [this.#work, this.#slots]) interval?.cancel();
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
      if (error) log.debug({ err: error }, listenFailed);
      this.#connectLater();
    };
    client.on('error', lost);
    client.on('end', () => this.#client === client && lost());
    client.on('notification', ({ channel, payload }) => this.#receive(channel, payload ?? ''));
    try {
      await client.connect();
    } catch (error) {
      return lost(error);
    }
    try {
      // A notification need not outlive a crash of the database, so its commit waits for no disk.
      const settings = 'SET synchronous_commit = off';
      const listens = Object.values(channels).map((channel) => `LISTEN ${channel}`);
      await client.query([settings, ...listens].join('; '));
    } catch (error) {
      if (isAway(error)) return lost(error);
      this.#isSupported = false;
      log.info({ err: error }, 'LISTEN is not supported; servers poll for work');
      await ended(client);
      return;
    }
    if (this.#isClosed) return void ended(client);
    this.#client = client;
    this.#keepAlive(client, lost);
  }

  /** Undefined if a file that the settings name, such as a certificate, is missing. */
  #newClient(): Client | undefined {
    try {
      const { url, sessionName } = this.options;
      return new Client(clientConfig(url, { sessionName }));
    } catch (error) {
      this.options.log.debug({ err: error }, listenFailed);
      return undefined;
    }
  }

  #connectLater(): void {
    this.#next?.cancel();
    if (this.#isClosed) return;
    this.#next = this.options.clock.after(reconnectMs, () => void this.#connect());
  }

  /** Detects a dead connection. */
  #keepAlive(client: Client, lost: (error: unknown) => void): void {
    this.#next = this.options.clock.after(keepaliveMs, () => {
      if (this.#client !== client) return;
      client.query('SELECT 1').then(() => this.#keepAlive(client, lost), lost);
    });
  }

  #add(outbox: Outbox, queues: Iterable<string>): void {
    if (this.#isClosed || !this.#isSupported) return;
    for (const queue of queues) outbox.names.add(queue);
    if (!outbox.interval) this.#send(outbox);
  }

  #send(outbox: Outbox): void {
    outbox.interval = undefined;
    const names = [...outbox.names].slice(0, maxNames);
    if (names.length === 0) return;
    for (const name of names) outbox.names.delete(name);
    outbox.interval = this.options.clock.after(intervalMs, () => this.#send(outbox));
    if (this.#client) this.#post(this.#client, outbox.channel, names);
  }

  #post(client: Client, channel: string, words: readonly string[]): void {
    const message = [this.options.instance, ...words].join(' ');
    client.query('SELECT pg_notify($1, $2)', [channel, message]).catch((error: unknown) => {
      this.options.log.debug({ err: error }, 'failed to notify other servers');
    });
  }

  #receive(channel: string, message: string): void {
    const [from, ...words] = message.split(' ');
    if (from === this.options.instance) return;
    const { onWork, onSlotFreed, onCancelled } = this.options;
    for (const word of words) {
      if (channel === channels.cancelled) onCancelled(word);
      else if (channel === channels.slots) onSlotFreed(word);
      else onWork(word);
    }
  }
}

/** Names of queues that other servers have not been notified of yet. */
class Outbox {
  readonly names = new Set<string>();
  /** Runs until the next notification may be sent. */
  interval: Timer | undefined;

  constructor(readonly channel: string) {}
}

/** Errors do not matter: the connection is no longer used. */
async function ended(client: Client): Promise<void> {
  await client.end().catch(() => {});
}

/** A smaller difference is ignored: clocks that are synchronised are closer. */
const toleranceMs = 1_000;
/** A measurement with a longer round trip is discarded. */
const maxRoundTripMs = 2_000;

/**
 * Shows the time of the database, so that all servers agree on leases and due times even if the
 * clock of one machine is wrong. Durations and timers are those of the machine.
 */
export class DatabaseClock implements Clock {
  /** How far the database is ahead of this machine; 0 if they agree. */
  #shiftMs = 0;

  constructor(
    private readonly machine: Clock,
    private readonly log: Log,
  ) {}

  readonly now: Clock['now'] = () => this.machine.now() + this.#shiftMs;
  readonly monotonic: Clock['monotonic'] = () => this.machine.monotonic();
  readonly after: Clock['after'] = (delayMs, run) => this.machine.after(delayMs, run);
  readonly sleep: Clock['sleep'] = (delayMs, signal) => this.machine.sleep(delayMs, signal);

  /** Measures the difference by the time that the database returns. */
  async measure(readTime: () => Promise<number>): Promise<void> {
    const sentAt = this.machine.monotonic();
    const time = await readTime();
    const tripMs = this.machine.monotonic() - sentAt;
    if (tripMs > maxRoundTripMs) return;
    const shiftMs = Math.round(time + tripMs / 2 - this.machine.now());
    const isRight = Math.abs(shiftMs) < toleranceMs;
    if (isRight ? this.#shiftMs === 0 : Math.abs(shiftMs - this.#shiftMs) < toleranceMs) return;
    this.#shiftMs = isRight ? 0 : shiftMs;
    const fields = { ahead_ms: -shiftMs };
    if (isRight) this.log.info(fields, 'clock of this machine agrees with PostgreSQL again');
    else this.log.warn(fields, 'clock of this machine differs from PostgreSQL: set it right');
  }
}

/** Registers a server that claims from a queue, and counts those of the last five seconds. */
export const joinClaimants = statement(
  'join_claimants',
  `WITH own AS (
    INSERT INTO millrace.claimants (queue_no, instance, asked_at)
    SELECT no, $2, clock_timestamp() FROM millrace.queues WHERE name = $1
    ON CONFLICT (queue_no, instance) DO UPDATE SET asked_at = excluded.asked_at
    RETURNING queue_no
  )
  SELECT 1 + (SELECT count(*) FROM millrace.claimants c
    WHERE c.queue_no = own.queue_no AND c.instance <> $2
      AND c.asked_at > clock_timestamp() - interval '5 seconds') AS claimants
  FROM own`,
);

export const leaveClaimants = statement(
  'leave_claimants',
  'DELETE FROM millrace.claimants WHERE instance = $1',
);

export const forgetClaimants = statement(
  'forget_claimants',
  `DELETE FROM millrace.claimants WHERE asked_at < clock_timestamp() - interval '1 hour'`,
);

export const readTime = statement(
  'read_time',
  `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::double precision AS now,
    current_setting('transaction_read_only') AS read_only`,
);

/** The first value written stays. */
export const keepSecret = statement(
  'keep_secret',
  `INSERT INTO millrace.secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
);

export const readSecret = statement(
  'read_secret',
  'SELECT value FROM millrace.secrets WHERE name = $1',
);
