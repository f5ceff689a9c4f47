import type { Database } from '@millrace/db';
import type { Clock, Timer } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { formatTimestamp } from '@millrace/kit/units';
import { reportsCollection } from './event.js';

export type Report = 'usage' | 'savings' | 'spend';

export interface ReportsParts {
  database: Database;
  clock: Clock;
  log: Log;
  /** So long at least lies between two words about the same report. */
  pauseMs?: number;
}

const usualPauseMs = 2_000;

/**
 * Has those who follow the stream know that a report has new figures. The word is stored, so it
 * has its place in the change log like every other change: whoever was away for a moment is told
 * when they come back. Many changes at once are one word.
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
    const { clock, pauseMs = usualPauseMs } = this.#parts;
    const timer = clock.after(pauseMs, () => {
      this.#pausing.delete(report);
      if (this.#wanted.delete(report)) this.changed(report);
    });
    this.#pausing.set(report, timer);
  }

  /** A word that waits is not left out: the figures did change. */
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
