import { expect, test } from 'vitest';
import { noTokens, type Tokens } from '../transcripts/sighting.js';
import { daysIn, mondayOf } from './local-day.js';
import type { KnownPlace } from './place-numbers.js';
import { rollup } from './rollup.js';
import { slotMs, type Cell } from './tally.js';

interface Message extends Partial<KnownPlace> {
  at: string;
  tokens?: Partial<Tokens>;
}

const usual: KnownPlace = {
  backend: 'claude',
  agent: 'a',
  cwd: '/x',
  repo: '/x',
  model: 'claude-opus-4-5',
  rank: 0,
};

const million = 1_000_000;

/** A rollup of these messages, each with a million tokens in and none out unless told. */
function spent(messages: readonly Message[], nowText: string, zone = 'UTC') {
  const now = Date.parse(nowText);
  const places = messages.map((message): KnownPlace => ({ ...usual, ...message }));
  const all = messages.map(({ at, tokens }, place) => ({
    at: Date.parse(at),
    place,
    tokens: { ...noTokens, ...(tokens ?? { input: million }) },
  }));
  const sums = {
    cells: (): Cell[] =>
      all.map(({ at, place, tokens }) => ({ slot: Math.floor(at / slotMs), place, tokens })),
    place: (number: number) => places[number]!,
    used: (from: number, to: number) =>
      new Map(
        all.filter(({ at }) => at >= from && at <= to).map(({ place, tokens }) => [place, tokens]),
      ),
  };
  return rollup(sums, { now, dayOf: daysIn(zone), basis: 'HEURISTIC' });
}

const now = '2026-01-15T12:00:00Z';

test('each tier has its price, and a model that nobody knows has that of the top', () => {
  const tokens = { input: million, output: million };
  const priceOf = (model: string) => spent([{ at: now, model, tokens }], now).total_usd;
  expect(priceOf('claude-opus-4-5-20251101')).toBe(30);
  expect(priceOf('claude-sonnet-4-5')).toBe(18);
  expect(priceOf('claude-3-5-haiku-latest')).toBe(4.8);
  expect(priceOf('claude-something-new')).toBe(30);
  expect(priceOf('unknown')).toBe(30);
});

test('one family has prices; the others tell tokens, and null dollars', () => {
  const { total_usd, input_tokens, by_backend, by_repo } = spent(
    [
      { at: now, tokens: { input: 1_000, output: 10 } },
      { at: now, backend: 'codex', model: 'gpt-5', tokens: { input: 5_000, output: 50 } },
    ],
    now,
  );
  expect([total_usd, input_tokens]).toEqual([0.00525, 6_000]);
  expect(by_backend).toEqual([
    { key: 'claude', input_tokens: 1_000, output_tokens: 10, usd: 0.00525 },
    { key: 'codex', input_tokens: 5_000, output_tokens: 50, usd: null },
  ]);
  // Priced and unpriced usage share a row.
  expect(by_repo).toEqual([{ key: '/x', input_tokens: 6_000, output_tokens: 60, usd: 0.00525 }]);
});

test('tokens of the cache stand apart, and their dollars in no other figure', () => {
  const tokens = { cacheRead: 3 * million, cacheWrite: 40_000 };
  const report = spent([{ at: now, tokens }], now);
  expect(report).toMatchObject({
    total_usd: 0,
    daily_usd: 0,
    cache_usd: 1.75,
    input_tokens: 0,
    cache_read_tokens: 3 * million,
    cache_write_tokens: 40_000,
  });
  const long = spent([{ at: now, tokens: { cacheWrite: 40_000, cacheWriteLong: 40_000 } }], now);
  expect(long.cache_usd).toBe(0.4);
});

test('sums of dollars are exact, however many messages they are of', () => {
  const one = { at: now, model: 'haiku', tokens: { input: 1, output: 1 } };
  const { total_usd } = spent(
    Array.from({ length: 10_000 }, () => one),
    now,
  );
  expect(total_usd).toBe(0.048);
});

test('a day is that of the zone, to the second', () => {
  const messages = [
    { at: '2026-01-14T22:59:59.999Z', agent: 'before' },
    { at: '2026-01-14T23:00:00Z', agent: 'after' },
  ];
  const berlin = spent(messages, '2026-01-15T00:30:00Z', 'Europe/Berlin');
  expect(berlin.by_day.map(({ key }) => key)).toEqual(['2026-01-14', '2026-01-15']);
  expect(berlin.daily_usd).toBe(5);
  const utc = spent(messages, '2026-01-15T00:30:00Z', 'UTC');
  expect([utc.by_day.map(({ key }) => key), utc.daily_usd]).toEqual([['2026-01-14'], 0]);
  // A quarter to the hour, and the other side of the date line.
  const nepal = [{ at: '2026-01-14T18:14:59Z' }, { at: '2026-01-14T18:15:00Z' }];
  expect(spent(nepal, now, 'Asia/Kathmandu').by_day).toHaveLength(2);
  expect(spent(nepal, now, 'Pacific/Kiritimati').by_day[0]!.key).toBe('2026-01-15');
});

test('days on which the clock is set have all their hours', () => {
  const at = ['2026-03-28T23:00:00Z', '2026-03-29T00:59:59Z', '2026-03-29T21:59:59Z'];
  const spring = spent(
    at.map((each) => ({ at: each })),
    '2026-03-29T22:00:00Z',
    'Europe/Berlin',
  );
  expect(spring.by_day).toMatchObject([{ key: '2026-03-29', usd: 15 }]);
  expect(spring.daily_usd).toBe(0);
  const autumn = ['2026-10-24T22:00:00Z', '2026-10-25T22:59:59Z', '2026-10-25T23:00:00Z'];
  const report = spent(
    autumn.map((each) => ({ at: each })),
    '2026-10-25T22:59:59Z',
    'Europe/Berlin',
  );
  expect(report.by_day.map(({ key, usd }) => [key, usd])).toEqual([
    ['2026-10-25', 10],
    ['2026-10-26', 5],
  ]);
});

test('the trailing week is seven days to the millisecond, the calendar week begins on Monday', () => {
  const report = spent(
    [
      { at: '2026-01-08T12:00:00.000Z' },
      { at: '2026-01-08T12:00:00.001Z' },
      { at: '2026-01-11T23:59:59Z' },
      { at: '2026-01-12T00:00:00Z' },
      { at: '2026-01-15T11:00:00Z' },
      { at: '2026-01-15T12:00:00.001Z' },
    ],
    now,
  );
  expect(report).toMatchObject({ total_usd: 30, weekly_usd: 20, week_usd: 15, daily_usd: 10 });
});

test('Monday is found on every day of the week and across years', () => {
  const days = ['2025-12-29', '2025-12-31', '2026-01-01', '2026-01-04', '2026-01-05'];
  expect(days.map(mondayOf)).toEqual([
    '2025-12-29',
    '2025-12-29',
    '2025-12-29',
    '2025-12-29',
    '2026-01-05',
  ]);
});

test('the zone of the machine is that of the process', () => {
  const time = Date.parse('2026-06-15T12:00:00Z');
  expect(daysIn()(time)).toBe(daysIn(process.env['TZ'] || undefined)(time));
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  for (let at = time; at < time + 86_400_000; at += slotMs) {
    expect(daysIn()(at)).toBe(daysIn(timeZone)(at));
  }
});

test('the dearest come first, then those with the most tokens, days in their order', () => {
  const { by_agent, by_day } = spent(
    [
      { at: '2026-01-15T11:00:00Z', agent: 'cheap', model: 'haiku' },
      { at: '2026-01-14T11:00:00Z', agent: 'dear' },
      { at: '2026-01-13T11:00:00Z', agent: 'few', backend: 'codex', tokens: { input: 1 } },
      { at: '2026-01-12T11:00:00Z', agent: 'many', backend: 'codex' },
    ],
    now,
  );
  expect(by_agent.map(({ key }) => key)).toEqual(['dear', 'cheap', 'many', 'few']);
  expect(by_day.map(({ key }) => key.slice(-2))).toEqual(['12', '13', '14', '15']);
});
