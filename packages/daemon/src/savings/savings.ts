import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { fail } from '../core/api.js';
import { Ledger } from './ledger.js';
import { ledgerFile } from './files.js';
import { readRatio, newestSamples } from './calibrate.js';
import { savingsReport } from './report.js';
import { parseSince } from '../core/since.js';

export interface SavingsParts {
  dataDir: string;
  clock: Clock;
  log: Log;
  /** The setting `savings`. */
  isOn: boolean;
  /** The setting `savings_samples`. */
  keepsSamples: boolean;
}

export interface SavingsQuery {
  since?: string | undefined;
  /** `day` or `hour` includes a trend. */
  bucket?: string | undefined;
  samples?: boolean | undefined;
}

const maxSamplesShown = 50;

/** Reports savings from the ledger, which other processes append to concurrently. */
export class Savings {
  readonly #ledger: Ledger;

  constructor(private readonly parts: SavingsParts) {
    this.#ledger = new Ledger(ledgerFile(parts.dataDir), parts.log);
  }

  async report({ since, bucket, samples }: SavingsQuery): Promise<DaemonSchema<'SavingsReport'>> {
    const { clock, dataDir, log, isOn, keepsSamples } = this.parts;
    if (!isOn) {
      throw fail(
        'SAVINGS_DISABLED',
        'The setting savings is off. Set savings to true and restart the daemon.',
      );
    }
    const now = clock.now();
    const from = since === undefined ? undefined : parseSince(since, now);
    const ratio = await readRatio(dataDir, (file) =>
      log.warn({ file }, 'calibration unreadable, run `ctl usage savings --calibrate`'),
    );
    const report = savingsReport(await this.#ledger.rows(), {
      since: from,
      granularity: bucket === 'day' || bucket === 'hour' ? bucket : undefined,
      now,
      ratio,
    });
    if (!samples) return report;
    const window = { max: maxSamplesShown, since: from ?? -Infinity };
    const pairs = keepsSamples ? await newestSamples(dataDir, window) : [];
    return { ...report, samples: pairs };
  }
}
