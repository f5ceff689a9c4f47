import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { bar, localTime } from '../render/figures.js';
import { plain } from '../render/paint.js';
import {
  auditScreen,
  savingsScreen,
  benchmarkScreen,
  dollars,
  exact,
  percent,
} from './savings-screen.js';
import { parseSince } from '../base/since.js';

type SavingsReport = DaemonSchema<'SavingsReport'>;

const example = contractExample('SavingsReport');
const sheet = (columns: number) => ({ columns, paint: plain });
/** The tests run in any zone. */
const from = localTime(example.since!);

test('at 80 columns: the axes, the features, the trend and what it rests on', () => {
  expect(savingsScreen(example, sheet(80))).toBe(`Savings since ${from}
context  81k of 90k tokens saved, 9k kept             90%  $0.41
offload  1.2k tokens of work done by the local model       $0.012

FEATURE      EVENTS  WITHOUT  SAVED
check             2      90k    81k  90%
llm_offload       1     1.2k   1.2k

2026-01-14 █▁ 2026-01-15
context saved by the day, at most 81k tokens

Tokens are estimated at 4 bytes each (HEURISTIC). Run \`ctl usage savings
--calibrate\` to measure the ratio.
`);
});

test('at 140 columns there is room for a bar', () => {
  const calibrated: SavingsReport = {
    ...example,
    basis: 'CALIBRATED',
    calibrated_bytes_per_token: 3.2,
  };
  expect(savingsScreen(calibrated, sheet(140))).toBe(`Savings since ${from}
context  81k of 90k tokens saved, 9k kept             90%  $0.41
offload  1.2k tokens of work done by the local model       $0.012

FEATURE      EVENTS  WITHOUT  SAVED
check             2      90k    81k  90%  ##################..
llm_offload       1     1.2k   1.2k

2026-01-14 █▁ 2026-01-15
context saved by the day, at most 81k tokens

Tokens are estimated with a calibrated ratio of 3.2 bytes each (CALIBRATED).
`);
});

test('no line is longer than the screen, also with the longest trend', () => {
  const bucket = example.buckets![0]!;
  const buckets = Array.from({ length: 1_500 }, (_, at) => ({
    ...bucket,
    date: '2026-01-14 10:00',
    saved_tokens: at,
  }));
  for (const columns of [60, 80, 140]) {
    const text = savingsScreen({ ...example, buckets, bucket_granularity: 'hour' }, sheet(columns));
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(columns);
  }
});

test('before anything is saved it says how to begin', () => {
  const { context, offload } = example.axes;
  const empty = {
    ...example,
    since: null,
    events: 0,
    features: [],
    axes: { context: { ...context, raw_tokens: 0 }, offload: { ...offload, events: 0 } },
  };
  expect(savingsScreen(empty, sheet(80))).toMatch(/^Savings since the start\nNothing.*ctl check/s);
});

test('the benchmark sets without beside with, the offload apart', () => {
  const expected = `CONTEXT  TOKENS  DOLLARS
without  90,000    $0.45  ####################
with      9,000   $0.045  ##..................
saved    81,000    $0.41  90%
Offload, counted separately: 1,200 tokens, $0.012.
Since ${from}, 3 events, HEURISTIC.
`;
  expect(benchmarkScreen(example, sheet(80))).toBe(expected);
  expect(benchmarkScreen(example, sheet(140))).toBe(expected);
});

test('the audit shows pairs, and nothing in them moves the cursor', () => {
  const [sample] = example.samples!;
  expect(auditScreen(example, sheet(80)))
    .toBe(`${localTime(sample!.ts)}  check  8 tokens raw, 3 kept, 62.5% saved  /home/ada/src/mill
  raw  | ok 1 reads
  raw  | ok 2 writes
  raw  | 12 passed
  kept | 12 passed
`);
  const raw = `${'line\n'.repeat(30)}\u001B[2Jlast\n`;
  const nasty = auditScreen({ ...example, samples: [{ ...sample!, raw }] }, sheet(80));
  expect(nasty).toContain('  raw  | (23 earlier lines)\n');
  expect(nasty).toContain('  raw  | ␛[2Jlast\n');
  expect(auditScreen({ ...example, samples: [] }, sheet(80))).toContain('savings_samples: true');
});

test('figures say no more and no less than they are', () => {
  expect([0, 0.405, 12.5, 1_234.5, 0.012, 0.00098, 0.00001, -0.41].map(dollars)).toEqual([
    '$0.00',
    '$0.41',
    '$12.50',
    '$1,234.50',
    '$0.012',
    '$0.00098',
    '<$0.0001',
    '-$0.41',
  ]);
  expect([0, 999, 1_000, 1_234_567].map(exact)).toEqual(['0', '999', '1,000', '1,234,567']);
  expect([0, 62.5, 99.99, 100, -50].map(percent)).toEqual(['0%', '62.5%', '99.9%', '100%', '-50%']);
  expect([-1, 0, 0.001, 0.5, 0.999, 1, 2].map((share) => bar(share, 4))).toEqual([
    '....',
    '....',
    '#...',
    '##..',
    '###.',
    '####',
    '####',
  ]);
});

test('--since takes spans, dates and times, and short ones are shown by the hour', () => {
  const now = Date.parse('2026-01-15T12:00:00Z');
  expect(parseSince('24h', now)).toEqual({ text: '24h', bucket: 'hour' });
  expect(parseSince('48h', now).bucket).toBe('hour');
  expect(parseSince('7d', now)).toEqual({ text: '7d', bucket: 'day' });
  const midnight = new Date('2026-01-01T00:00:00').toISOString();
  expect(parseSince('2026-01-01', now)).toEqual({ text: midnight, bucket: 'day' });
  expect(parseSince('2026-01-15T11:00:00+02:00', now)).toEqual({
    text: '2026-01-15T09:00:00.000Z',
    bucket: 'hour',
  });
  for (const text of ['', '7', '0d', 'yesterday', '2026-02-30', '2026-13-01', '2026-01-01T00:00']) {
    expect(() => parseSince(text, now)).toThrow(/^--since must be a span such as 24h/);
  }
});
