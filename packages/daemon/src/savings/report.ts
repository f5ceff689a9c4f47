import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp } from '@millrace/kit/units';
import { dollarsOf, priceOf, ratesOf } from '../spend/pricing.js';
import type { Columns, Row } from './columns.js';
import { features, type Feature } from './entry.js';
import { indexOf, intervalsOf, type Granularity } from './intervals.js';
import type { LocalTime } from './local-time.js';
import { tokensIn, type Ratio } from './ratio.js';

type Report = DaemonSchema<'SavingsReport'>;
type Bucket = DaemonSchema<'SavingsBucket'>;

export interface ReportOptions {
  /** Unix milliseconds; undefined means all time. */
  since: number | undefined;
  granularity: Granularity | undefined;
  now: number;
  ratio: Ratio;
  local: LocalTime;
}

/** Nobody knows which model would have read it, and unknown models are of the top tier. */
const rates = ratesOf('claude', 'unknown')!;

/** What one row of the ledger saved, in tokens of the present ratio. */
interface Saved {
  raw: number;
  kept: number;
  output: number;
}

/** The ledger as a report. The two axes share nothing but the count of events. */
export function savingsReport(rows: Columns, options: ReportOptions): Report {
  const { since, ratio } = options;
  const totals = new Map<Feature, Saved & { events: number }>();
  let first = Infinity;
  rows.each(since ?? -Infinity, (row) => {
    first = Math.min(first, row.at);
    const saved = savedBy(row, ratio);
    const total = totals.get(row.feature) ?? { raw: 0, kept: 0, output: 0, events: 0 };
    total.raw += saved.raw;
    total.kept += saved.kept;
    total.output += saved.output;
    total.events += 1;
    totals.set(row.feature, total);
  });
  const context = contextAxis(totals);
  const from = since ?? Math.min(first, options.now);
  return {
    since: since === undefined ? null : formatTimestamp(since),
    events: [...totals.values()].reduce((sum, { events }) => sum + events, 0),
    ...context,
    features: features.flatMap((feature) => {
      const total = totals.get(feature);
      if (!total) return [];
      const { raw, kept, events } = total;
      return [{ feature, saved_tokens: raw - kept, raw_tokens: raw, events }];
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
  const { rawTokens, keptTokens, outputTokens, isMeasured } = row;
  // Old rows gain by a calibration as new ones do: they know their bytes.
  const isDerived = !isMeasured && ratio.basis === 'CALIBRATED';
  const raw = isDerived ? tokensIn(row.rawBytes, ratio) : rawTokens;
  const kept = isDerived ? tokensIn(row.keptBytes, ratio) : keptTokens;
  if (row.feature !== 'llm_offload') return { raw, kept, output: 0 };
  const output = isDerived ? tokensIn(row.outputBytes, ratio) : outputTokens;
  return { raw, kept: Math.min(kept, raw), output: Math.min(output, Math.max(0, raw - kept)) };
}

type Totals = ReadonlyMap<Feature, Saved & { events: number }>;

function contextAxis(totals: Totals): DaemonSchema<'ContextSavings'> {
  let [raw, kept] = [0, 0];
  for (const [feature, total] of totals) {
    if (feature === 'llm_offload') continue;
    raw += total.raw;
    kept += total.kept;
  }
  return {
    raw_tokens: raw,
    kept_tokens: kept,
    saved_tokens: raw - kept,
    saved_dollars: dollarsOf(priceOf(rates, { input: raw - kept, output: 0 })),
    reduction_pct: raw === 0 ? 0 : (100 * (raw - kept)) / raw,
  };
}

function offloadAxis(totals: Totals): DaemonSchema<'OffloadSavings'> {
  const { raw, kept, output, events } = totals.get('llm_offload') ?? nothing;
  const tokens = raw - kept;
  const price = priceOf(rates, { input: tokens - output, output });
  return { tokens, dollars: dollarsOf(price), events };
}

const nothing = { raw: 0, kept: 0, output: 0, events: 0 };

/** An idle interval is a real zero. What is older than the first one stands in `cumulative`. */
function trend(
  rows: Columns,
  options: ReportOptions & { from: number; granularity: Granularity },
): Bucket[] {
  const { from, now, local, granularity, since = -Infinity, ratio } = options;
  const intervals = intervalsOf(granularity, { from, to: now }, local);
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
  rows.each(since, (row) => {
    const { raw, kept } = savedBy(row, ratio);
    const isContext = row.feature !== 'llm_offload';
    if (row.at < intervals[0]!.start) {
      if (isContext) running += raw - kept;
      return;
    }
    // A clock that was ahead wrote later than now: that still belongs to the last one.
    const bucket = buckets[indexOf(intervals, row.at)]!;
    bucket.events += 1;
    if (isContext) bucket.saved_tokens += raw - kept;
    bucket.by_feature[row.feature] = (bucket.by_feature[row.feature] ?? 0) + raw - kept;
  });
  for (const bucket of buckets) {
    running += bucket.saved_tokens;
    bucket.cumulative = running;
  }
  return buckets;
}
