import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp } from '@millrace/kit/units';
import { dollarsOf, priceOf, ratesOf } from '../spend/pricing.js';
import type { Row } from './ledger.js';
import { features, type Feature } from './entry.js';
import { indexOf, intervalsOf, type Granularity } from '../core/local-time.js';
import { tokensIn, type Ratio } from './calibrate.js';

type Report = DaemonSchema<'SavingsReport'>;
type Bucket = DaemonSchema<'SavingsBucket'>;

export interface ReportOptions {
  /** Unix milliseconds; undefined means all time. */
  since: number | undefined;
  granularity: Granularity | undefined;
  now: number;
  ratio: Ratio;
}

/** The model that would have read it is unknown, and unknown models are priced at the top tier. */
const rates = ratesOf('claude', 'unknown')!;

/** Savings of one ledger row, in tokens of the current ratio. */
interface Saved {
  raw: number;
  retained: number;
  output: number;
}

/** Builds the report from the ledger. */
export function savingsReport(rows: readonly Row[], options: ReportOptions): Report {
  const { since, ratio } = options;
  const totals = new Map<Feature, Saved & { events: number }>();
  let first = Infinity;
  for (const row of rows) {
    if (row.at < (since ?? -Infinity)) continue;
    first = Math.min(first, row.at);
    const saved = savedBy(row, ratio);
    const total = totals.get(row.feature) ?? { raw: 0, retained: 0, output: 0, events: 0 };
    total.raw += saved.raw;
    total.retained += saved.retained;
    total.output += saved.output;
    total.events += 1;
    totals.set(row.feature, total);
  }
  const context = contextAxis(totals);
  const from = since ?? Math.min(first, options.now);
  return {
    since: since === undefined ? null : formatTimestamp(since),
    events: [...totals.values()].reduce((sum, { events }) => sum + events, 0),
    ...context,
    features: features.flatMap((feature) => {
      const total = totals.get(feature);
      if (!total) return [];
      const { raw, retained, events } = total;
      return [{ feature, saved_tokens: raw - retained, raw_tokens: raw, events }];
    }),
    axes: { context, offload: offloadAxis(totals) },
    basis: ratio.basis,
    calibrated_bytes_per_token: ratio.basis === 'CALIBRATED' ? ratio.bytesPerToken : null,
    ...(options.granularity && {
      buckets: trend(rows, { ...options, from, granularity: options.granularity }),
      bucket_granularity: options.granularity,
    }),
  };
}

function savedBy(row: Row, ratio: Ratio): Saved {
  const { rawTokens, retainedTokens, outputTokens, isMeasured } = row;
  // A calibration also applies to old rows, which store bytes.
  const isDerived = !isMeasured && ratio.basis === 'CALIBRATED';
  const raw = isDerived ? tokensIn(row.rawBytes, ratio) : rawTokens;
  const retained = isDerived ? tokensIn(row.retainedBytes, ratio) : retainedTokens;
  if (row.feature !== 'llm_offload') return { raw, retained, output: 0 };
  const output = isDerived ? tokensIn(row.outputBytes, ratio) : outputTokens;
  return {
    raw,
    retained: Math.min(retained, raw),
    output: Math.min(output, Math.max(0, raw - retained)),
  };
}

type Totals = ReadonlyMap<Feature, Saved & { events: number }>;

function contextAxis(totals: Totals): DaemonSchema<'ContextSavings'> {
  let [raw, retained] = [0, 0];
  for (const [feature, total] of totals) {
    if (feature === 'llm_offload') continue;
    raw += total.raw;
    retained += total.retained;
  }
  return {
    raw_tokens: raw,
    kept_tokens: retained,
    saved_tokens: raw - retained,
    saved_dollars: dollarsOf(priceOf(rates, { input: raw - retained, output: 0 })),
    reduction_pct: raw === 0 ? 0 : (100 * (raw - retained)) / raw,
  };
}

function offloadAxis(totals: Totals): DaemonSchema<'OffloadSavings'> {
  const { raw, retained, output, events } = totals.get('llm_offload') ?? nothing;
  const tokens = raw - retained;
  const price = priceOf(rates, { input: tokens - output, output });
  return { tokens, dollars: dollarsOf(price), events };
}

const nothing = { raw: 0, retained: 0, output: 0, events: 0 };

/** Idle intervals are 0. Savings before the first interval are included in `cumulative`. */
function trend(
  rows: readonly Row[],
  options: ReportOptions & { from: number; granularity: Granularity },
): Bucket[] {
  const { from, now, granularity, since = -Infinity, ratio } = options;
  const intervals = intervalsOf(granularity, { from, to: now });
  const buckets = intervals.map(({ start, label }): Bucket => ({
    ts: Math.floor(start / 1000),
    date: label,
    saved_tokens: 0,
    events: 0,
    cumulative: 0,
    by_feature: {},
  }));
  if (buckets.length === 0) return buckets;
  let running = 0;
  for (const row of rows) {
    if (row.at < since) continue;
    const { raw, retained } = savedBy(row, ratio);
    const isContext = row.feature !== 'llm_offload';
    if (row.at < intervals[0]!.start) {
      if (isContext) running += raw - retained;
      continue;
    }
    // Rows in the future, after a clock change, count for the last interval.
    const bucket = buckets[indexOf(intervals, row.at)]!;
    bucket.events += 1;
    if (isContext) bucket.saved_tokens += raw - retained;
    bucket.by_feature[row.feature] = (bucket.by_feature[row.feature] ?? 0) + raw - retained;
  }
  for (const bucket of buckets) {
    running += bucket.saved_tokens;
    bucket.cumulative = running;
  }
  return buckets;
}
