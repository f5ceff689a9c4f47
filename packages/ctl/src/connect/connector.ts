import type { Clock } from '@millrace/kit/clock';
import { Refusal, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import type { JsonObject, WatchMessage } from '@millrace/db';
import { CallRefusal, type RemoteDatabase } from '@millrace/db/client';
import type { QueueApi } from '../queue/api.js';
import { needsBefore, tasksOf, type Task } from './change-task.js';
import type { ConnectorConfig } from './connectors-file.js';
import type { ConnectorMetrics } from './metrics.js';
import { SavedPosition, type Position } from './positions.js';

export interface ConnectorParts {
  readonly database: RemoteDatabase;
  readonly queue: QueueApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: ConnectorMetrics;
}

const maxBatchTasks = 500;
const maxBatchBytes = 4 * 1024 * 1024;
const heartbeatMs = 5_000;
// Without changes the position is saved this often, so that the log still has it after a restart.
const idleSaveMs = 10 * 60_000;
const [firstDelayMs, maxDelayMs] = [100, 10_000];
/** Errors of the database that a retry cannot resolve. */
const finalCodes = new Set(['BAD_FILTER', 'BAD_REQUEST', 'BAD_COLLECTION', 'WATCH_COMPACTED']);

/**
 * Turns the changes of a collection into tasks. A position is saved after its tasks are stored, so
 * that a change is submitted at least once; the id of the task makes it exactly once.
 */
export class Connector {
  readonly #position: SavedPosition;
  #savedAt: number;

  constructor(
    readonly config: ConnectorConfig,
    private readonly parts: ConnectorParts,
  ) {
    this.#position = new SavedPosition(parts.database, config, () => parts.clock.now());
    this.#savedAt = parts.clock.monotonic();
  }

  /** Runs until the signal is aborted. Throws only what a retry cannot resolve. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#retrying(signal, async () => this.#follow(await this.#position.load(), signal));
    }
  }

  async #follow(from: Position, signal: AbortSignal): Promise<void> {
    const { database, log } = this.parts;
    const { name, queue, collection, filter } = this.config;
    log.info({ connector: name, collection, queue, seq: from.seq }, 'connector started');
    const stop = new AbortController();
    const watch = database.collection<JsonObject>(collection).watch({
      ...(from.resume_token === ''
        ? { startSeq: from.seq + 1 }
        : { resumeToken: from.resume_token }),
      ...(filter === undefined ? {} : { filter: filter as never }),
      includeBefore: needsBefore(this.config),
      heartbeatMs,
      reconnectForMs: Infinity,
      signal: AbortSignal.any([signal, stop.signal]),
      onCut: (reason) => this.#warn(reason, 'database connection lost'),
    });
    const buffer = new MessageBuffer(watch as AsyncIterable<WatchMessage>);
    try {
      for (;;) {
        const messages = await buffer.take();
        if (!messages) return;
        await this.#process(messages, signal);
      }
    } finally {
      stop.abort();
    }
  }

  async #process(messages: readonly WatchMessage[], signal: AbortSignal): Promise<void> {
    const { metrics, clock } = this.parts;
    const { name } = this.config;
    const oldest = messages.find(({ changes }) => changes.length > 0)?.committedAt;
    metrics.setOldest(name, oldest?.getTime());
    const tasks = messages.flatMap((message) => tasksOf(message, this.config));
    for (const batch of batchesOf(tasks)) await this.#submit(batch, signal);
    if (signal.aborted) return;
    const last = messages.at(-1)!;
    const isIdle = messages.every(({ changes }) => changes.length === 0);
    metrics.setBehind(name, last.leaderSeq - last.seq);
    if (last.resumeToken === '') return;
    const isDue = clock.monotonic() - this.#savedAt > idleSaveMs && last.seq > this.#position.seq;
    if (!isIdle || isDue || this.#position.hasError) {
      await this.#position.save(last.seq, last.resumeToken);
      this.#savedAt = clock.monotonic();
    }
    metrics.setOldest(name, undefined);
  }

  /** Submits until every task is stored, in the order of the changes. */
  async #submit(tasks: readonly Task[], signal: AbortSignal): Promise<void> {
    let left = tasks;
    await this.#retrying(signal, async () => {
      const { queue, metrics } = this.parts;
      const { body: results } = await queue.call('submitBatch', {
        queue: this.config.queue,
        body: left,
      });
      const failures = results.filter(({ status }) => status !== 202);
      metrics.addTasks(this.config.name, left.length - failures.length);
      left = left.filter((_, i) => results[i]?.status !== 202);
      const [first] = failures;
      if (first && 'error' in first) throw new Refusal(first.error.code, first.error.detail ?? '');
    });
  }

  /** Repeats with backoff until it succeeds or the signal is aborted. */
  async #retrying(signal: AbortSignal, attempt: () => Promise<void>): Promise<void> {
    const { clock, random } = this.parts;
    let delayMs = firstDelayMs;
    while (!signal.aborted) {
      const startedAt = clock.monotonic();
      try {
        return await attempt();
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Refusal)) throw error;
        if (finalCodes.has(error.code)) throw this.#final(error);
        this.#warn(error, 'connector cannot continue, retrying');
        this.parts.metrics.addError(this.config.name);
        await this.#reportError(error);
        // It worked for a while before this failure.
        if (clock.monotonic() - startedAt > maxDelayMs) delayMs = firstDelayMs;
        const waitMs = (error.extra.retryAfterMs ?? 0) + delayMs * (0.5 + random.next() / 2);
        await clock.sleep(waitMs, signal).catch(() => undefined);
        delayMs = Math.min(delayMs * 2, maxDelayMs);
      }
    }
  }

  /** Shown by `ctl status`, which notices by itself when the database is down. */
  async #reportError(error: Refusal): Promise<void> {
    if (error instanceof CallRefusal) return;
    try {
      await this.#position.saveError(`${error.code}: ${error.detail}`);
    } catch (failure) {
      if (!(failure instanceof Refusal)) throw failure;
      this.#warn(failure, 'failed to save the state of the connector');
    }
  }

  #final({ code, detail }: Refusal): UsageError {
    const { place, name } = this.config;
    const advice =
      code === 'WATCH_COMPACTED'
        ? ' Changes since then are not in the queue. To continue with new changes, run: ' +
          `ctl db delete millrace_connectors ${name}`
        : '';
    return new UsageError(`${place}: connector "${name}": ${detail}${advice}`);
  }

  #warn(error: Error, message: string): void {
    const { name, queue } = this.config;
    this.parts.log.warn({ connector: name, queue, reason: error.message }, message);
  }
}

/** In order, each within the limits of one request. */
function batchesOf(tasks: readonly Task[]): Task[][] {
  const batches: Task[][] = [];
  let bytes = Infinity;
  for (const task of tasks) {
    const size = task.payload?.length ?? 0;
    if (bytes + size > maxBatchBytes || batches.at(-1)!.length >= maxBatchTasks) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)!.push(task);
    bytes += size;
  }
  return batches;
}

const maxChanges = 1_000;

/** Reads ahead of the consumer, so that commits that wait are processed together. */
class MessageBuffer {
  #messages: WatchMessage[] = [];
  #changeCount = 0;
  #end: { readonly error?: unknown } | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeTaker: (() => void) | undefined;

  constructor(messages: AsyncIterable<WatchMessage>) {
    this.#read(messages).then(
      () => this.#finish({}),
      (error: unknown) => this.#finish({ error }),
    );
  }

  /** All messages that wait, at least one; undefined at the end. */
  async take(): Promise<WatchMessage[] | undefined> {
    while (this.#messages.length === 0) {
      if (this.#end && 'error' in this.#end) throw this.#end.error;
      if (this.#end) return undefined;
      await new Promise<void>((resolve) => (this.#wakeTaker = resolve));
    }
    const taken = this.#messages;
    this.#messages = [];
    this.#changeCount = 0;
    this.#wakeReader?.();
    return taken;
  }

  async #read(messages: AsyncIterable<WatchMessage>): Promise<void> {
    for await (const message of messages) {
      this.#messages.push(message);
      this.#changeCount += message.changes.length;
      this.#wakeTaker?.();
      if (this.#changeCount < maxChanges) continue;
      await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    }
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end = end;
    this.#wakeTaker?.();
  }
}
