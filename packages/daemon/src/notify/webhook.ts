import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Outbound, OutboundOutcome } from '@millrace/kit/outbound';
import type { Random } from '@millrace/kit/random';
import { maxOutboxEntries, type AlertStore, type OutboxEntry } from './alert-store.js';
import { signedHeaders } from './signature.js';

export interface WebhookParts {
  url: string;
  key: Uint8Array;
  store: Pick<AlertStore, 'outbox' | 'postpone' | 'leaveOutbox'>;
  outbound: Pick<Outbound, 'request'>;
  clock: Clock;
  random: Random;
  log: Log;
}

const answerLimitMs = 5_000;
const giveUpAfterMs = 24 * 3_600_000;
/** How long an alert waits after its first, second, ... failure; the last one again and again. */
const waitsMs = [2_000, 10_000, 60_000, 300_000, 900_000];
/** How long the others wait after one has failed, so that a receiver that is down gets few. */
const maxBackoffMs = 60_000;

/**
 * Sends what is in the outbox, one at a time and the oldest first among those that are due. One
 * that is refused again and again waits longer and longer, and keeps none of the others back.
 */
export class Webhook {
  readonly #parts: WebhookParts;
  readonly #stop = new AbortController();
  /** In the order of their ids. */
  readonly #waiting = new Map<string, OutboxEntry>();
  #pausedUntil = 0;
  #failures = 0;
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
  }

  /** Takes up what an earlier daemon has left. */
  async start(): Promise<void> {
    const nextAt = this.#parts.clock.now();
    // Whoever starts the daemon anew may have mended what was wrong.
    for (const entry of await this.#parts.store.outbox()) {
      this.#waiting.set(entry.id, { ...entry, nextAt });
    }
    this.#wake();
  }

  /** A new entry, which is in the store already. */
  offer(entry: OutboxEntry): void {
    this.#waiting.set(entry.id, entry);
    const [oldest] = this.#waiting.keys();
    // The store has let it go, too.
    if (this.#waiting.size > maxOutboxEntries) this.#waiting.delete(oldest!);
    this.#wake();
  }

  /** What is under way is cut short and will be sent again by the next daemon. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#timer?.cancel();
    await this.#sending;
  }

  #wake(): void {
    if (this.#stop.signal.aborted || this.#sending) return;
    this.#sending = this.#sendDue().finally(() => {
      this.#sending = undefined;
      this.#sleep();
    });
  }

  #sleep(): void {
    this.#timer?.cancel();
    if (this.#stop.signal.aborted || this.#waiting.size === 0) return;
    const first = Math.min(...[...this.#waiting.values()].map(({ nextAt }) => nextAt));
    const delayMs = Math.max(first, this.#pausedUntil) - this.#parts.clock.now();
    this.#timer = this.#parts.clock.after(Math.max(0, delayMs), () => this.#wake());
  }

  async #sendDue(): Promise<void> {
    for (let entry = this.#due(); entry; entry = this.#due()) {
      try {
        await this.#send(entry);
      } catch (error) {
        // The disk failed. The entry is still there, and the next daemon sends it.
        this.#waiting.delete(entry.id);
        this.#parts.log.error({ err: error }, 'webhook outbox failed');
      }
    }
  }

  #due(): OutboxEntry | undefined {
    const now = this.#parts.clock.now();
    if (this.#stop.signal.aborted || now < this.#pausedUntil) return undefined;
    return [...this.#waiting.values()].find(({ nextAt }) => nextAt <= now);
  }

  async #send(entry: OutboxEntry): Promise<void> {
    const { url, key, outbound, clock, store, log } = this.#parts;
    const outcome = await outbound.request({
      url,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'millrace-daemon',
        ...signedHeaders(entry, key, clock.now()),
      },
      body: entry.body,
      timeoutMs: answerLimitMs,
      maxResponseBytes: 1024,
      signal: this.#stop.signal,
    });
    const objection = objectionTo(outcome);
    if (objection !== undefined) return this.#failed(entry, objection);
    if (this.#failures > 0) log.info({}, 'webhook delivery recovered');
    this.#failures = 0;
    await store.leaveOutbox(entry.id);
    this.#waiting.delete(entry.id);
  }

  async #failed(entry: OutboxEntry, reason: string): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const { clock, store, log } = this.#parts;
    const now = clock.now();
    if (this.#failures === 0) log.warn({ reason }, 'webhook delivery failed');
    this.#failures++;
    this.#pausedUntil = now + Math.min(this.#waitMs(this.#failures), maxBackoffMs);
    const tries = entry.tries + 1;
    const later: OutboxEntry = { ...entry, tries, nextAt: now + this.#waitMs(tries) };
    if (later.nextAt - entry.raisedAt > giveUpAfterMs) {
      log.warn(
        { id: entry.id, tries, reason },
        'webhook delivery abandoned, the note is in the inbox',
      );
      await store.leaveOutbox(entry.id);
      this.#waiting.delete(entry.id);
    } else if (await store.postpone(later)) {
      this.#waiting.set(entry.id, later);
    } else {
      this.#waiting.delete(entry.id);
    }
  }

  #waitMs(tries: number): number {
    const waitMs = waitsMs[Math.min(tries, waitsMs.length) - 1]!;
    return Math.round(waitMs * (1 + this.#parts.random.next() / 5));
  }
}

/** Why this was no delivery; undefined when it was one. */
function objectionTo(outcome: OutboundOutcome): string | undefined {
  if (!outcome.ok) return outcome.message;
  const { status } = outcome;
  if (status >= 200 && status < 300) return undefined;
  if (status >= 300 && status < 400) {
    return `the webhook answered ${status}, and redirects are not followed: set notify.webhook_url to where it leads`;
  }
  return `the webhook answered ${status}`;
}
