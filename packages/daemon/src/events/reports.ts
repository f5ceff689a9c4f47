import { stat } from 'node:fs/promises';
import type { Database } from '@millrace/engine';
import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { formatTimestamp } from '@millrace/kit/units';
import { reportsCollection } from './events.js';

export type Report = 'usage' | 'savings' | 'spend';

export interface ReportsParts {
  database: Database;
  clock: Clock;
  log: Log;
  /** Minimum interval between two notifications of the same report. */
  pauseMs?: number;
}

const defaultPauseMs = 2_000;

/**
 * Notifies readers of the event stream that a report has new figures. The notification is a stored
 * record, so it is in the change log and readers that reconnect get it. Bursts are coalesced.
 */
export class Reports {
  readonly #pausing = new Map<Report, Timer>();
  readonly #wanted = new Set<Report>();
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(private readonly parts: ReportsParts) {}

  changed(report: Report): void {
    if (this.#isClosed) return;
    if (this.#pausing.has(report)) {
      this.#wanted.add(report);
      return;
    }
    this.#writing = this.#writing.then(() => this.#write(report));
    const { clock, pauseMs = defaultPauseMs } = this.parts;
    const timer = clock.after(pauseMs, () => {
      this.#pausing.delete(report);
      if (this.#wanted.delete(report)) this.changed(report);
    });
    this.#pausing.set(report, timer);
  }

  /** Flushes pending notifications. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#pausing.values()) timer.cancel();
    for (const report of this.#wanted) {
      this.#writing = this.#writing.then(() => this.#write(report));
    }
    this.#wanted.clear();
    await this.#writing;
  }

  async #write(report: Report): Promise<void> {
    const { database, clock, log } = this.parts;
    try {
      const changed_at = formatTimestamp(clock.now());
      await database.collection(reportsCollection).upsert(report, { changed_at });
    } catch (error) {
      log.warn({ err: error, report }, 'failed to publish report change');
    }
  }
}

export interface LedgerWatchParts {
  file: string;
  clock: Clock;
  onChange: () => void;
  intervalMs?: number;
}

const defaultIntervalMs = 2_000;

/**
 * Detects changes of the savings ledger by polling its size and mtime, because `ctl` appends to it
 * without calling the daemon.
 */
export function watchLedger(parts: LedgerWatchParts): { close(): Promise<void> } {
  const { file, clock, onChange, intervalMs = defaultIntervalMs } = parts;
  let timer: Timer | undefined;
  let isClosed = false;
  let seen: string | undefined;
  const poll = async () => {
    const found = await stat(file).catch(() => undefined);
    const now = found ? `${found.ino}:${found.size}:${found.mtimeMs}` : 'none';
    if (seen !== undefined && now !== seen && !isClosed) onChange();
    seen = now;
    if (!isClosed) timer = clock.after(intervalMs, next);
  };
  let polling = Promise.resolve();
  const next = () => void (polling = poll());
  next();
  return {
    async close() {
      isClosed = true;
      timer?.cancel();
      await polling;
    },
  };
}
