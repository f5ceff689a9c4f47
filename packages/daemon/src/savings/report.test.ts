import { openApiDocument } from '@millrace/contract/documents';
import { DocumentSchemas, type OpenApiDocument } from '@millrace/kit/http';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rowOf } from './ledger.js';
import type { Entry } from './entry.js';
import { heuristicRatio, type Ratio } from './calibrate.js';
import { savingsReport, type ReportOptions } from './report.js';
import { anyEntry, someEntry } from './savings.test-support.js';

beforeEach(() => void vi.stubEnv('TZ', 'UTC'));
afterEach(() => vi.unstubAllEnvs());

const schemas = new DocumentSchemas(openApiDocument('daemon') as unknown as OpenApiDocument);
const now = Date.parse('2026-01-15T09:30:00.000Z');
const calibrated: Ratio = { bytesPerToken: 3.2, basis: 'CALIBRATED' };

function report(entries: readonly Entry[], options: Partial<ReportOptions> = {}) {
  const made = savingsReport(entries.map(rowOf), {
    since: undefined,
    granularity: undefined,
    now,
    ratio: heuristicRatio,
    ...options,
  });
  const check = schemas.named('SavingsReport');
  expect(check.accepts(made) ? [] : check.faults(made)).toEqual([]);
  return made;
}

test("the contract's own example is what its ledger gives", () => {
  const day = Date.parse('2026-01-14T10:12:00.000Z');
  const half = {
    ...someEntry,
    at: day,
    rawBytes: 180_000,
    retainedBytes: 18_000,
    rawTokens: 45_000,
    retainedTokens: 4_500,
  };
  const offload: Entry = {
    ...half,
    feature: 'llm_offload',
    rawBytes: 4_800,
    retainedBytes: 0,
    rawTokens: 1_200,
    retainedTokens: 0,
    outputBytes: 1_200,
    outputTokens: 300,
  };
  const made = report([half, half, offload], {
    since: Date.parse('2026-01-14T00:00:00.000Z'),
    granularity: 'day',
  });
  const { examples } = openApiDocument('daemon').components as unknown as {
    examples: { SavingsReport: { value: { samples?: unknown } } };
  };
  const { samples: _, ...example } = examples.SavingsReport.value;
  expect(made).toEqual(example);
});

test('an empty ledger is all zeros, with the present interval', () => {
  expect(report([], { granularity: 'hour' })).toEqual({
    since: null,
    events: 0,
    raw_tokens: 0,
    kept_tokens: 0,
    saved_tokens: 0,
    saved_dollars: 0,
    reduction_pct: 0,
    features: [],
    axes: {
      context: {
        raw_tokens: 0,
        kept_tokens: 0,
        saved_tokens: 0,
        saved_dollars: 0,
        reduction_pct: 0,
      },
      offload: { tokens: 0, dollars: 0, events: 0 },
    },
    basis: 'HEURISTIC',
    calibrated_bytes_per_token: null,
    buckets: [
      {
        ts: Date.parse('2026-01-15T09:00:00Z') / 1000,
        date: '2026-01-15 09:00',
        saved_tokens: 0,
        events: 0,
        cumulative: 0,
        by_feature: {},
      },
    ],
    bucket_granularity: 'hour',
  });
});

test('a calibration holds for old entries too, but not for tokens that were counted', () => {
  const counted: Entry = {
    ...someEntry,
    feature: 'compact',
    rawBytes: 0,
    retainedBytes: 0,
    rawTokens: 500,
    retainedTokens: 100,
    basis: 'MEASURED',
  };
  expect(report([someEntry, counted], { ratio: calibrated })).toMatchObject({
    basis: 'CALIBRATED',
    calibrated_bytes_per_token: 3.2,
    raw_tokens: 1_250 + 500,
    kept_tokens: 125 + 100,
  });
});

test('an entry at the very start of the window counts, one before it does not', () => {
  const early = { ...someEntry, at: someEntry.at - 1 };
  const options = { since: someEntry.at, granularity: 'hour' as const };
  const { events, buckets } = report([early, someEntry], options);
  expect([events, buckets![0]!.events]).toEqual([1, 1]);
});

test('what kept more than there was is a loss and is shown as one', () => {
  const worse = { ...someEntry, rawTokens: 100, retainedTokens: 150 };
  expect(report([worse])).toMatchObject({ saved_tokens: -50, reduction_pct: -50 });
});

test('an entry from a clock that is ahead counts in the last interval', () => {
  const ahead = { ...someEntry, at: now + 3_600_000_000 };
  const { buckets, saved_tokens: saved } = report([ahead], { granularity: 'day' });
  expect(buckets).toMatchObject([{ date: '2026-01-15', events: 1, saved_tokens: saved }]);
});

test('beyond 1,500 intervals the running total still ends at the whole', () => {
  const old = { ...someEntry, at: now - 2_000 * 86_400_000 };
  const made = report([old, someEntry], { granularity: 'day' });
  expect(made.buckets).toHaveLength(1_500);
  expect(made.buckets![0]!.cumulative).toBe(900);
  expect(made.buckets!.at(-1)!.cumulative).toBe(made.saved_tokens);
});

/** The same figures, counted in the plainest way. */
function naiveCount(entries: readonly Entry[], since: number, { bytesPerToken, basis }: Ratio) {
  const tokens = (bytes: number, recorded: number) =>
    basis === 'CALIBRATED' ? Math.ceil(bytes / bytesPerToken) : recorded;
  const count = { events: 0, raw: 0, retained: 0, offload: 0, dollars: 0 };
  for (const each of entries.filter(({ at }) => at >= since)) {
    count.events += 1;
    const raw = tokens(each.rawBytes, each.rawTokens);
    if (each.feature === 'llm_offload') {
      const output = tokens(each.outputBytes, each.outputTokens);
      count.offload += raw;
      count.dollars += ((raw - output) * 5 + output * 25) / 1e6;
    } else {
      count.raw += raw;
      count.retained += tokens(each.retainedBytes, each.retainedTokens);
    }
  }
  return count;
}

const dayMs = 86_400_000;
/** Around the days on which Berlin and New York set their clocks. */
const moments = ['2026-03-30', '2026-10-26', '2026-03-09', '2026-11-02', '2026-07-01'].map((day) =>
  Date.parse(`${day}T15:00:00Z`),
);

const reportInputs = fc
  .record({
    moment: fc.constantFrom(...moments),
    zone: fc.constantFrom('Europe/Berlin', 'America/New_York', 'Asia/Kolkata'),
    granularity: fc.constantFrom('day' as const, 'hour' as const),
    ratio: fc.constantFrom(heuristicRatio, calibrated),
    windowMs: fc.option(fc.integer({ min: 0, max: 5 * dayMs })),
  })
  .chain((rest) =>
    fc.record({
      rest: fc.constant(rest),
      entries: fc.array(anyEntry(rest.moment - 4 * dayMs, rest.moment), { maxLength: 40 }),
    }),
  );

test('the report is what a plain count gives, and its intervals add up to it', () => {
  fc.assert(
    fc.property(
      reportInputs,
      ({ entries, rest: { moment, zone, granularity, ratio, windowMs } }) => {
        const since = windowMs === null ? undefined : moment - windowMs;
        vi.stubEnv('TZ', zone);
        const made = report(entries, { since, granularity, now: moment, ratio });
        const count = naiveCount(entries, since ?? -Infinity, ratio);

        expect(made.events).toBe(count.events);
        expect(made).toMatchObject({ raw_tokens: count.raw, kept_tokens: count.retained });
        expect(made.saved_tokens).toBe(count.raw - count.retained);
        expect(made.saved_dollars).toBeCloseTo(((count.raw - count.retained) * 5) / 1e6, 9);
        expect(made.axes.offload.tokens).toBe(count.offload);
        expect(made.axes.offload.dollars).toBeCloseTo(count.dollars, 9);

        const buckets = made.buckets!;
        const sum = (of: (bucket: (typeof buckets)[number]) => number) =>
          buckets.reduce((total, bucket) => total + of(bucket), 0);
        expect(sum(({ saved_tokens: saved }) => saved)).toBe(made.saved_tokens);
        expect(sum(({ events }) => events)).toBe(made.events);
        for (const { feature, saved_tokens: saved } of made.features) {
          expect(sum(({ by_feature: by }) => by[feature] ?? 0)).toBe(saved);
        }
        let running = 0;
        for (const bucket of buckets) {
          running += bucket.saved_tokens;
          expect(bucket.cumulative).toBe(running);
          const { llm_offload: _, ...context } = bucket.by_feature;
          const parts = Object.values(context).reduce((total, part) => total + part, 0);
          expect(bucket.saved_tokens).toBe(parts);
        }
        for (const [index, { ts, events }] of buckets.entries()) {
          const end = buckets[index + 1]?.ts ?? Infinity;
          const inside = entries.filter(
            ({ at }) => at >= (since ?? -Infinity) && at >= ts * 1000 && at < end * 1000,
          );
          expect(events).toBe(inside.length);
        }
      },
    ),
    { numRuns: 200 },
  );
});
