import { seededRandom } from '@millrace/kit/random';
import { describe, expect, test } from 'vitest';
import { campaignSize } from '../../../../test/support/campaign.js';
import { lastOccurrences, type Occurrences, occurrencesOf, Zone } from './schedule.js';

const minuteMs = 60_000;
const dayMs = 86_400_000;

function times(occurrences: Occurrences, from: string, count: number): string[] {
  const found: string[] = [];
  let at = Date.parse(from);
  for (let i = 0; i < count; i++) {
    at = occurrences.next(at)!;
    found.push(new Date(at).toISOString().slice(0, 16));
  }
  return found;
}

const cron = (expression: string, timezone = 'UTC') =>
  occurrencesOf({ cron: expression, timezone });
const berlin = (expression: string) => cron(expression, 'Europe/Berlin');

describe('clock changes', () => {
  test('a time in the gap runs once, at the first moment after it', () => {
    expect(times(berlin('30 2 * * *'), '2027-03-27T12:00Z', 2)).toEqual([
      '2027-03-28T01:00',
      '2027-03-29T00:30',
    ]);
    expect(times(berlin('*/20 2 * * *'), '2027-03-27T12:00Z', 3)).toEqual([
      '2027-03-28T01:00',
      '2027-03-29T00:00',
      '2027-03-29T00:20',
    ]);
    expect(times(berlin('*/20 * * * *'), '2027-03-28T00:30Z', 3)).toEqual([
      '2027-03-28T00:40',
      '2027-03-28T01:00',
      '2027-03-28T01:20',
    ]);
  });

  test('a doubled time runs once, at its first occurrence', () => {
    expect(times(berlin('30 2 * * *'), '2027-10-30T12:00Z', 2)).toEqual([
      '2027-10-31T00:30',
      '2027-11-01T01:30',
    ]);
    expect(times(berlin('*/20 * * * *'), '2027-10-31T00:30Z', 3)).toEqual([
      '2027-10-31T00:40',
      '2027-10-31T02:00',
      '2027-10-31T02:20',
    ]);
    // A search that starts during the second pass.
    expect(times(berlin('*/20 * * * *'), '2027-10-31T01:10Z', 1)).toEqual(['2027-10-31T02:00']);
  });

  test('a day that a zone left out runs at its end', () => {
    // Samoa had no 30 December 2011.
    expect(times(cron('30 2 * * *', 'Pacific/Apia'), '2011-12-29T00:00Z', 4)).toEqual([
      '2011-12-29T12:30',
      '2011-12-30T10:00',
      '2011-12-30T12:30',
      '2011-12-31T12:30',
    ]);
  });
});

/** The definition, minute by minute: every wall-clock minute that matches runs once. */
function expectedRuns(zone: Zone, matches: (wall: Date) => boolean, from: number, to: number) {
  const runs: number[] = [];
  let shown = zone.wallTime(from - minuteMs);
  for (let at = from; at < to; at += minuteMs) {
    const wall = zone.wallTime(at);
    let isRun = false;
    // More than one minute: the clock was set forward. None or less: it was set back.
    for (let minute = shown + minuteMs; minute <= wall; minute += minuteMs) {
      if (matches(new Date(minute))) isRun = true;
    }
    if (isRun) runs.push(at);
    shown = Math.max(shown, wall);
  }
  return runs;
}

const zones = [
  'Europe/Berlin',
  'America/New_York',
  'America/Havana',
  'Australia/Lord_Howe',
  'Africa/Casablanca',
  'Asia/Kathmandu',
  'Pacific/Apia',
  'America/Santiago',
  'Europe/Dublin',
];

/** Both halves of the world, a change of half an hour, and a day that was left out. */
const tried = ['Europe/Berlin', 'Australia/Lord_Howe', 'Pacific/Apia'];
for (const name of zones) {
  const tags = tried.includes(name) ? {} : { tags: 'campaign-cases' };
  test(`random daily schedules in ${name}: none is missed or doubled over years`, tags, () => {
    const zone = new Zone(name);
    const random = seededRandom(name.length * 7 + name.charCodeAt(3));
    const from = Date.UTC(2010, 0, 1);
    const to = Date.UTC(2012, 1, 1);
    for (let round = 0; round < campaignSize({ quick: 1, full: 4 }); round++) {
      const [minute, hour] = [random.integer(0, 59), random.integer(0, 4)];
      const occurrences = cron(`${minute} ${hour} * * *`, name);
      const found: number[] = [];
      for (let at = occurrences.next(from - 1)!; at < to; at = occurrences.next(at)!) {
        found.push(at);
      }
      const matches = (wall: Date) =>
        wall.getUTCMinutes() === minute && wall.getUTCHours() === hour;
      // Minute by minute only around the days on which the offset changes.
      const changes: number[] = [];
      for (let day = from; day < to; day += dayMs) {
        const offset = (at: number) => zone.wallTime(at) - at;
        if (offset(day) !== offset(day + dayMs)) changes.push(day);
      }
      for (const day of changes) {
        const [start, end] = [day - dayMs, day + 2 * dayMs];
        const expected = expectedRuns(zone, matches, start, end);
        expect(found.filter((at) => at >= start && at < end)).toEqual(expected);
      }
      const days = new Set(found.map((at) => Math.floor(zone.wallTime(at) / dayMs)));
      // Samoa left out a day; its run is at the start of the next one.
      expect(days.size).toBe(found.length - (name === 'Pacific/Apia' ? 1 : 0));
    }
  });
}

const perZone = campaignSize({ quick: 400, full: 2_000 });
test(`one run a day over ${4 * perZone} simulated days in zones with clock changes`, () => {
  let simulated = 0;
  for (const name of ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'UTC']) {
    const occurrences = cron('30 2 * * *', name);
    const zone = new Zone(name);
    let at = occurrences.next(Date.UTC(2020, 0, 1))!;
    let lastDay = Math.floor(zone.wallTime(at) / dayMs);
    for (let day = 0; day < perZone; day++) {
      at = occurrences.next(at)!;
      const wallDay = Math.floor(zone.wallTime(at) / dayMs);
      if (wallDay !== lastDay + 1) expect.fail(`${name}: ${new Date(at).toISOString()}`);
      lastDay = wallDay;
      simulated++;
    }
  }
  expect(simulated).toBe(4 * perZone);
});

test('an interval counts from its start', () => {
  const every = occurrencesOf({ everyMs: 1_500, anchor: 10_000 });
  expect([every.next(0), every.next(10_000), every.next(11_499), every.next(11_500)]).toEqual([
    11_500, 11_500, 11_500, 13_000,
  ]);
});

test('expressions with 5 or 6 fields and nicknames are accepted', () => {
  expect(times(cron('*/15 * * * * *'), '2027-01-01T00:00Z', 1)).toEqual(['2027-01-01T00:00']);
  expect(times(cron('@daily'), '2027-01-01T00:00Z', 1)).toEqual(['2027-01-02T00:00']);
  expect(times(cron('0 9 * * MON-FRI'), '2027-01-01T10:00Z', 1)).toEqual(['2027-01-04T09:00']);
});

test.each(['', '* * * *', '61 * * * *', '2027-01-01T00:00:00', '0 0 1 1 * 2027 x', '@never'])(
  'the expression "%s" is refused',
  (expression) => {
    expect(() => cron(expression)).toThrow(TypeError);
  },
);

test('an expression without any match has no occurrence', () => {
  expect(cron('0 0 30 2 *').next(0)).toBeUndefined();
});

test('an unknown time zone is refused', () => {
  expect(() => cron('* * * * *', 'Europe/Atlantis')).toThrow(RangeError);
});

test('the last occurrences are found without walking through an outage', () => {
  const seconds = cron('* * * * * *');
  const to = Date.UTC(2027, 5, 1);
  const range = { from: Date.UTC(2020, 0, 1), to };
  expect(lastOccurrences(seconds, { ...range, max: 3 })).toEqual([to - 2000, to - 1000, to]);
  const yearly = cron('0 0 1 1 *');
  expect(lastOccurrences(yearly, { ...range, max: 1 })).toEqual([Date.UTC(2027, 0, 1)]);
  expect(lastOccurrences(yearly, { from: to - 10, to, max: 5 })).toEqual([]);
});
