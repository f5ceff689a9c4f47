import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import {
  dayNumber,
  hourLabel,
  indexOf,
  intervalsOf,
  maxIntervals,
  startOfDay,
  wallTime,
  type Granularity,
} from './local-time.js';

afterEach(() => vi.unstubAllEnvs());
const goTo = (zone: string) => vi.stubEnv('TZ', zone);

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const zones = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'Africa/Cairo',
  'Pacific/Apia',
  'America/Havana',
];
/** Days on which clocks were set somewhere, and an ordinary one. */
const changes = [
  '2026-03-29',
  '2026-10-25',
  '2026-03-08',
  '2026-11-01',
  '2026-04-05',
  '2026-10-04',
  '2024-04-26',
  '2011-12-30',
  '2026-06-15',
].map((day) => Date.parse(`${day}T00:00:00Z`));

const naive = new Map(
  zones.map((timeZone) => [
    timeZone,
    new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' }),
  ]),
);

/** Asked another way: with the label of the moment itself. */
function naiveLabel(at: number, zone: string, granularity: Granularity): string {
  const text = naive.get(zone)!.format(at);
  return granularity === 'day' ? text.slice(0, 10) : text.slice(0, 13);
}

test.each(zones)('days and hours in %s end where the wall clock says', (zone) => {
  goTo(zone);
  for (const change of changes) {
    const [from, to] = [change - 36 * hourMs, change + 60 * hourMs];
    for (const granularity of ['day', 'hour'] as const) {
      const intervals = intervalsOf(granularity, { from, to });
      // Walked minute by minute: a new label is a new interval, and so is an hour that comes twice.
      const expected: string[] = [];
      let [previous, offset] = ['', NaN];
      for (let at = from; at <= to; at += 30 * minuteMs) {
        const label = naiveLabel(at, zone, granularity);
        const isMoved = granularity === 'hour' && wallTime(at) - at < offset && label <= previous;
        if (label !== previous || isMoved) expected.push(label);
        [previous, offset] = [label, wallTime(at) - at];
      }
      const labels = intervals.map((each) => naiveLabel(each.start, zone, granularity));
      expect([zone, granularity, dayOf(change), labels]).toEqual([
        zone,
        granularity,
        dayOf(change),
        expected,
      ]);
    }
  }
});

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

test('a day of Berlin has 23 or 25 hours when the clock is set, and 24 otherwise', () => {
  goTo('Europe/Berlin');
  const lengthOf = (day: string) => {
    const number = dayNumber(Date.parse(`${day}T12:00:00Z`));
    return (startOfDay(number + 1) - startOfDay(number)) / hourMs;
  };
  expect(['2026-03-29', '2026-10-25', '2026-06-15'].map(lengthOf)).toEqual([23, 25, 24]);
});

test('the hour that comes twice has two intervals with one label', () => {
  goTo('Europe/Berlin');
  const from = Date.parse('2026-10-24T23:00:00Z');
  const intervals = intervalsOf('hour', { from, to: from + 3 * hourMs });
  expect(intervals.map(({ label }) => label)).toEqual([
    '2026-10-25 01:00',
    '2026-10-25 02:00',
    '2026-10-25 02:00',
    '2026-10-25 03:00',
  ]);
  expect(intervals.map(({ start }) => start)).toEqual([0, 1, 2, 3].map((h) => from + h * hourMs));
});

test('an hour of half an hour stands where Lord Howe Island sets its clocks', () => {
  goTo('Australia/Lord_Howe');
  const from = Date.parse('2026-10-03T14:30:00Z');
  const intervals = intervalsOf('hour', { from, to: from + 2 * hourMs });
  expect(intervals.map(({ label }) => label)).toEqual([
    '2026-10-04 01:00',
    '2026-10-04 02:30',
    '2026-10-04 03:00',
  ]);
});

test('a day that a zone leaves out is not there, and one without midnight starts later', () => {
  goTo('Pacific/Apia');
  const [from, to] = [Date.parse('2011-12-29T12:00:00Z'), Date.parse('2011-12-31T12:00:00Z')];
  expect(intervalsOf('day', { from, to }).map(({ label }) => label)).toEqual([
    '2011-12-29',
    '2011-12-31',
    '2012-01-01',
  ]);
  goTo('Africa/Cairo');
  const start = startOfDay(dayNumber(Date.parse('2024-04-26T12:00:00Z')));
  expect(hourLabel(start)).toBe('2024-04-26 01:00');
});

test('intervals are contiguous, cover the range, and are found again, in any zone', () => {
  const range = fc.record({
    zone: fc.constantFrom(...zones),
    granularity: fc.constantFrom<Granularity>('day', 'hour'),
    from: fc.integer({
      min: Date.parse('2020-01-01T00:00:00Z'),
      max: Date.parse('2030-01-01T00:00:00Z'),
    }),
    lengthMs: fc.integer({ min: 0, max: 40 * 24 * hourMs }),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(range, ({ zone, granularity, from, lengthMs, at }) => {
      goTo(zone);
      const to = from + lengthMs;
      const intervals = intervalsOf(granularity, { from, to });
      expect(intervals[0]!.start).toBeLessThanOrEqual(from);
      expect(intervals.at(-1)!.start).toBeLessThanOrEqual(to);
      const most = granularity === 'day' ? 25 * hourMs : hourMs;
      expect(to - intervals.at(-1)!.start).toBeLessThan(most);
      for (const [index, { start }] of intervals.entries()) {
        const next = intervals[index + 1];
        if (!next) continue;
        expect(next.start).toBeGreaterThan(start);
        expect(next.start - start).toBeLessThanOrEqual(most);
      }
      const moment = Math.floor(from + at * lengthMs);
      const index = indexOf(intervals, moment);
      expect(intervals[index]!.start).toBeLessThanOrEqual(moment);
      expect(intervals[index + 1]?.start ?? Infinity).toBeGreaterThan(moment);
    }),
    { numRuns: 150 },
  );
});

test('of more than 1,500 intervals the newest stay, and it does not take long', () => {
  goTo('America/New_York');
  const to = Date.parse('2026-11-15T12:34:56Z');
  for (const granularity of ['day', 'hour'] as const) {
    const all = intervalsOf(granularity, { from: Date.parse('0001-01-01T00:00:00Z'), to });
    expect(all.length).toBe(maxIntervals);
    expect(to - all.at(-1)!.start).toBeLessThan(25 * hourMs);
  }
  expect(intervalsOf('day', { from: to + 48 * hourMs, to })).toEqual([]);
});
