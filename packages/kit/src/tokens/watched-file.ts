import { statSync, watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock, Timer } from '../base/clock.js';
import { readTextFile } from '../config/text-file.js';
import { UsageError, messageOf, systemCode } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { Metrics } from '../base/metrics.js';
import { readableByOthers } from '../base/private-files.js';

export interface WatchFileOptions<T> {
  file: string;
  /** What the file holds, for logs and metrics: `tokens`. */
  name: string;
  /** Throws a UsageError that says what is wrong and where. */
  parse: (text: string, file: string) => T;
  clock: Clock;
  log: Log;
  metrics?: Metrics;
  /** False: others may read it, so that no warning is due. */
  isPrivate?: boolean;
  /** Where SIGHUP arrives; the process, or another source in tests. */
  signals?: SignalSource;
}

interface SignalSource {
  on(signal: 'SIGHUP', listener: () => void): unknown;
  removeListener(signal: 'SIGHUP', listener: () => void): unknown;
}

/** A file that is reloaded on change. An invalid version is reported; the last valid one stays. */
export interface WatchedFile<T> {
  readonly current: T;
  /** Why the newest version of the file is not in use; otherwise undefined. */
  readonly lastError: string | undefined;
  /** Reads the file now. */
  reload(): void;
  close(): void;
}

const settleMs = 100;
const pollMs = 5_000;

/** Reads the file, throwing when it is bad, and from then on whenever it changes or on SIGHUP. */
export function watchFile<T>(options: WatchFileOptions<T>): WatchedFile<T> {
  return new FollowedFile(options);
}

class FollowedFile<T> implements WatchedFile<T> {
  readonly #options: WatchFileOptions<T>;
  readonly #onHangup = () => this.#reload('SIGHUP');
  readonly #countFailure: () => void;
  #current: T;
  #lastError: string | undefined;
  /** The text that was read last, valid or not. */
  #text: string | undefined;
  #stamp: string;
  #watcher: FSWatcher | undefined;
  #settling: Timer | undefined;
  #polling: Timer | undefined;
  #closed = false;

  constructor(options: WatchFileOptions<T>) {
    this.#options = options;
    this.#stamp = stampOf(options.file);
    this.#text = this.#read();
    this.#current = options.parse(this.#text, options.file);
    const warning = options.isPrivate === false ? undefined : readableByOthers(options.file);
    if (warning !== undefined) options.log.warn({ file: options.file }, warning);
    this.#countFailure = failureCounter(options, () => (this.#lastError === undefined ? 1 : 0));
    this.#signals().on('SIGHUP', this.#onHangup);
    this.#watchFolder();
    this.#poll();
  }

  get current(): T {
    return this.#current;
  }

  get lastError(): string | undefined {
    return this.#lastError;
  }

  reload(): void {
    this.#reload('request');
  }

  close(): void {
    this.#closed = true;
    this.#signals().removeListener('SIGHUP', this.#onHangup);
    this.#watcher?.close();
    this.#settling?.cancel();
    this.#polling?.cancel();
  }

  #signals(): SignalSource {
    return this.#options.signals ?? process;
  }

  #read(): string {
    const { file } = this.#options;
    const text = readTextFile(file);
    if (text === undefined) throw new UsageError(`${file}: no such file`);
    return text;
  }

  #reload(cause: string): void {
    const { file, name, parse, log } = this.#options;
    try {
      this.#stamp = stampOf(file);
      const text = this.#read();
      if (text === this.#text && this.#lastError === undefined) return;
      this.#text = text;
      this.#current = parse(text, file);
      this.#lastError = undefined;
      log.info({ file, cause }, `${name} reloaded`);
    } catch (error) {
      const message = messageOf(error);
      // The poll and the watcher may both find the same bad file: it is logged once.
      if (message === this.#lastError && cause === 'change') return;
      this.#lastError = message;
      this.#countFailure();
      // A mistake in the file names its line; a stack trace would only hide it.
      const detail = error instanceof UsageError ? {} : { err: error };
      log.error({ file, cause, ...detail }, `failed to reload ${name}: ${message}`);
    }
  }

  /** The folder and not the file: a file that is replaced by a rename is a new one. */
  #watchFolder(): void {
    const { file, log } = this.#options;
    const fail = (error: unknown) => {
      log.warn({ file, err: error }, 'failed to watch file, polling instead');
      this.#watcher?.close();
    };
    try {
      this.#watcher = watch(dirname(file), { persistent: false }, () => this.#settle());
      this.#watcher.on('error', fail);
    } catch (error) {
      fail(error);
    }
  }

  /** A file is often written in several steps: the last one counts. */
  #settle(): void {
    this.#settling?.cancel();
    if (this.#closed) return;
    this.#settling = this.#options.clock.after(settleMs, () => this.#check());
  }

  #check(): void {
    if (stampOf(this.#options.file) !== this.#stamp) this.#reload('change');
  }

  /** For file systems that do not tell, and links whose target lies in another folder. */
  #poll(): void {
    this.#polling = this.#options.clock.after(pollMs, () => {
      this.#check();
      if (!this.#closed) this.#poll();
    });
  }
}

/** Changes whenever the file does. */
function stampOf(file: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(file);
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    // Reading the file says what is wrong with it; here it only matters that it changed.
    return `unreadable ${systemCode(error)}`;
  }
}

function failureCounter<T>(
  { name, metrics }: WatchFileOptions<T>,
  isFresh: () => number,
): () => void {
  if (!metrics) return () => undefined;
  metrics.gauge({
    name: `${name}_file_fresh`,
    help: `1 while the newest ${name} file is in use, 0 while it is bad and an older one is.`,
    read: isFresh,
  });
  const failures = metrics.counter({
    name: `${name}_file_failures_total`,
    help: `How often a changed ${name} file could not be used.`,
  });
  return () => failures.inc({});
}
