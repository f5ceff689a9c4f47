import type { Database } from '@millrace/engine';
import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { formatTimestamp } from '@millrace/kit/units';
import { reportsCollection } from './event.js';

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
  readonly #parts: ReportsParts;
  readonly #pausing = new Map<Report, Timer>();
  readonly #wanted = new Set<Report>();
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: ReportsParts) {
    this.#parts = parts;
  }

  changed(report: Report): void {
    if (this.#isClosed) return;
    if (this.#pausing.has(report)) {
      this.#wanted.add(report);
      return;
    }
    this.#writing = this.#writing.then(() => this.#write(report));
    const { clock, pauseMs = defaultPauseMs } = this.#parts;
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
    const { database, clock, log } = this.#parts;
    try {
      const changed_at = formatTimestamp(clock.now());
      await database.collection(reportsCollection).upsert(report, { changed_at });
    } catch (error) {
      log.warn({ err: error, report }, 'failed to publish report change');
    }
  }
}
