import { readFileSync } from 'node:fs';
import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import type { Outbound, OutboundOutcome } from '@millrace/kit/outbound';
import { writePrivateFile } from '@millrace/kit/private-files';
import type { Random } from '@millrace/kit/random';
import { signatureOf, newSigningSecret, signingKeyOf } from '@millrace/kit/webhooks';
import { messageOf, systemCode, UsageError } from '@millrace/kit/errors';
import { maxOutboxEntries, type AlertStore, type OutboxEntry } from './alert-store.js';

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
/** Backoff after the first, second, ... failure; the last value repeats. */
const waitsMs = [2_000, 10_000, 60_000, 300_000, 900_000];
/** Pause for all alerts after a failure, so that a receiver that is down gets few requests. */
const maxBackoffMs = 60_000;

/**
 * Sends the outbox one alert at a time, the oldest due one first. An alert that keeps failing backs
 * off without blocking the others.
 */
export class Webhook {
  readonly #stop = new AbortController();
  /** Ordered by id. */
  readonly #waiting = new Map<string, OutboxEntry>();
  #pausedUntil = 0;
  #failures = 0;
  #timer: Timer | undefined;
  #sending: Promise<void> | undefined;

  constructor(private readonly parts: WebhookParts) {}

  /** Resumes the outbox of an earlier daemon. */
  async start(): Promise<void> {
    const nextAt = this.parts.clock.now();
    // The problem may be fixed by now, so a restart resets the backoff.
    for (const entry of await this.parts.store.outbox()) {
      this.#waiting.set(entry.id, { ...entry, nextAt });
    }
    this.#wake();
  }

  /** Adds an entry that is already in the store. */
  offer(entry: OutboxEntry): void {
    this.#waiting.set(entry.id, entry);
    const [oldest] = this.#waiting.keys();
    // The store dropped it too.
    if (this.#waiting.size > maxOutboxEntries) this.#waiting.delete(oldest!);
    this.#wake();
  }

  /** Aborts the delivery in flight; the next daemon sends it again. */
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
    const delayMs = Math.max(first, this.#pausedUntil) - this.parts.clock.now();
    this.#timer = this.parts.clock.after(Math.max(0, delayMs), () => this.#wake());
  }

  async #sendDue(): Promise<void> {
    for (let entry = this.#due(); entry; entry = this.#due()) {
      try {
        await this.#send(entry);
      } catch (error) {
        // The store failed. The entry stays, and the next daemon sends it.
        this.#waiting.delete(entry.id);
        this.parts.log.error({ err: error }, 'webhook outbox failed');
      }
    }
  }

  #due(): OutboxEntry | undefined {
    const now = this.parts.clock.now();
    if (this.#stop.signal.aborted || now < this.#pausedUntil) return undefined;
    return [...this.#waiting.values()].find(({ nextAt }) => nextAt <= now);
  }

  async #send(entry: OutboxEntry): Promise<void> {
    const { url, key, outbound, clock, store, log } = this.parts;
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
    const denyReason = objectionTo(outcome);
    if (denyReason !== undefined) return this.#failed(entry, denyReason);
    if (this.#failures > 0) log.info({}, 'webhook delivery recovered');
    this.#failures = 0;
    await store.leaveOutbox(entry.id);
    this.#waiting.delete(entry.id);
  }

  async #failed(entry: OutboxEntry, reason: string): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const { clock, store, log } = this.parts;
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
    return Math.round(waitMs * (1 + this.parts.random.next() / 5));
  }
}

/** Why the delivery failed; undefined on success. */
function objectionTo(outcome: OutboundOutcome): string | undefined {
  if (!outcome.ok) return outcome.message;
  const { status } = outcome;
  if (status >= 200 && status < 300) return undefined;
  if (status >= 300 && status < 400) {
    return `the webhook responded with ${status}, and redirects are not followed: set notify.webhook_url to its target`;
  }
  return `the webhook responded with ${status}`;
}

/** Headers that let a receiver verify an alert. */
export function signedHeaders(
  { id, body }: { id: string; body: string },
  key: Uint8Array,
  now: number,
): Record<string, string> {
  const timestampSeconds = Math.floor(now / 1000);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatureOf({ id, timestampSeconds, body: Buffer.from(body) }, [key]),
  };
}

/**
 * The signing key of alerts: from the given secret, or from the file, which is created when
 * missing.
 */
export function webhookKey(
  given: string | undefined,
  { file, random }: { file: string; random: Random },
): Uint8Array {
  if (given !== undefined) return keyOf(given, 'notify.webhook_secret');
  const text = secretIn(file);
  if (text !== undefined) return keyOf(text, file);
  const made = newSigningSecret(random);
  writePrivateFile(file, `${made}\n`);
  return keyOf(made, file);
}

function secretIn(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw new UsageError(`${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Never includes the value in errors: a malformed secret is still a secret. */
function keyOf(secret: string, where: string): Uint8Array {
  const key = signingKeyOf(secret);
  if (key) return key;
  const example = '"whsec_" followed by base64, as `openssl rand -base64 32` prints it';
  throw new UsageError(`${where} must be ${example}`);
}
