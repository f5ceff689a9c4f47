import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatByteSize,
  formatCount,
  formatDuration,
  formatTimestamp,
  humanAge,
  humanBytes,
  humanCount,
  humanDuration,
  parseByteSize,
  parseCount,
  parseDuration,
  parseTimestamp,
  UnitError,
} from './units.js';

const wholeNumber = fc.oneof(
  fc.nat(),
  fc.maxSafeNat(),
  fc.nat({ max: 100_000 }).map((n) => n * 1000),
);

describe('durations', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['500ms', 500],
    ['15m', 900_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['2w', 1_209_600_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['0.1s', 100],
    ['1w1d1h1m1s1ms', 694_861_001],
  ])('%s is %d milliseconds', (text, expected) => {
    expect(parseDuration(text)).toBe(expected);
  });

  test.each([
    ['', 'must be a duration such as'],
    ['15', 'add a unit: 15s or 15m'],
    ['soon', 'not "soon"'],
    ['-5m', 'must be a duration'],
    ['5 m', 'must be a duration'],
    ['5m ', 'must be a duration'],
    ['30m1h', 'from large to small'],
    ['1m1m', 'from large to small'],
    ['1M', 'must be a duration'],
    ['0.5ms', 'smallest step is one millisecond'],
    ['1.0000000000000001s', 'smallest step'],
    ['9999999999999999d', 'too long'],
    ['1e3s', 'must be a duration'],
    ['.5h', 'must be a duration'],
    ['١m', 'must be a duration'],
  ])('%j is refused and told why', (text, expected) => {
    expect(() => parseDuration(text)).toThrow(UnitError);
    expect(() => parseDuration(text)).toThrow(expected);
  });

  test('every whole number of milliseconds survives being written and read', () => {
    fc.assert(fc.property(wholeNumber, (ms) => parseDuration(formatDuration(ms)) === ms));
  });

  test('what cannot be written is refused', () => {
    for (const bad of [-1, 1.5, Number.NaN, Infinity]) {
      expect(() => formatDuration(bad)).toThrow(RangeError);
    }
  });

  test.each([
    [0, '0ms'],
    [45, '45ms'],
    [999.6, '1s'],
    [1234, '1.2s'],
    [9999, '10s'],
    [59_600, '1m'],
    [200_000, '3m 20s'],
    [3_599_900, '1h'],
    [86_399_999, '1d'],
    [187_200_000, '2d 4h'],
    [-1500, '-1.5s'],
    [Infinity, '-'],
  ])('%d ms reads as %s', (ms, expected) => {
    expect(humanDuration(ms)).toBe(expected);
  });

  test('a reading never drifts from the true length by more than a twentieth', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 ** 12 }), (ms) => {
        const read = parseDuration(humanDuration(ms).replace(' ', ''));
        expect(Math.abs(read - ms)).toBeLessThanOrEqual(ms * 0.05);
      }),
    );
  });
});

describe('sizes', () => {
  test.each([
    ['0', 0],
    ['512', 512],
    ['512B', 512],
    ['256KiB', 262_144],
    ['1GiB', 1_073_741_824],
    ['1.5 GiB', 1_610_612_736],
    ['1MB', 1_000_000],
    ['1kB', 1000],
    ['1KB', 1000],
    ['2TiB', 2_199_023_255_552],
  ])('%s is %d bytes', (text, expected) => {
    expect(parseByteSize(text)).toBe(expected);
  });

  test.each([
    ['', 'must be a size such as'],
    ['1K', 'KiB counts in 1024s, kB in 1000s'],
    ['1mb', 'MiB counts in 1024s, MB in 1000s'],
    ['1 PiB', 'units are B, KiB'],
    ['-1B', 'must be a size'],
    ['1.5B', 'not a whole number of bytes'],
    ['0.3KiB', 'not a whole number of bytes'],
    ['99999999TiB', 'too large'],
    ['1  GiB', 'must be a size'],
  ])('%j is refused and told why', (text, expected) => {
    expect(() => parseByteSize(text)).toThrow(expected);
  });

  test('every whole number of bytes survives being written and read', () => {
    fc.assert(fc.property(wholeNumber, (bytes) => parseByteSize(formatByteSize(bytes)) === bytes));
  });

  test.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1 KiB'],
    [1536, '1.5 KiB'],
    [1_048_570, '1 MiB'],
    [157_286_400, '150 MiB'],
    [2 ** 60, '1024 PiB'],
    [-2048, '-2 KiB'],
  ])('%d bytes read as %s', (bytes, expected) => {
    expect(humanBytes(bytes)).toBe(expected);
  });
});

describe('counts', () => {
  test.each([
    ['0', 0],
    ['300', 300],
    ['200k', 200_000],
    ['200K', 200_000],
    ['1.5M', 1_500_000],
    ['2m', 2_000_000],
    ['1G', 1e9],
    ['200_000', 200_000],
  ])('%s is %d', (text, expected) => {
    expect(parseCount(text)).toBe(expected);
  });

  test.each([
    ['', 'must be a count'],
    ['many', 'must be a count'],
    ['5x', 'k is thousand'],
    ['1.5', 'not a whole number'],
    ['1.0005k', 'not a whole number'],
    ['-3', 'must be a count'],
    ['_3', 'must be a count'],
    ['3_', 'must be a count'],
    ['99999999999G', 'too large'],
  ])('%j is refused and told why', (text, expected) => {
    expect(() => parseCount(text)).toThrow(expected);
  });

  test('every count survives being written and read', () => {
    fc.assert(fc.property(wholeNumber, (count) => parseCount(formatCount(count)) === count));
  });

  test.each([
    [950, '950'],
    [1200, '1.2k'],
    [999_960, '1M'],
    [3_400_000, '3.4M'],
    [0, '0'],
  ])('%d reads as %s', (count, expected) => {
    expect(humanCount(count)).toBe(expected);
  });
});

const two = (n: number) => String(n).padStart(2, '0');

describe('timestamps', () => {
  test.each([
    ['1970-01-01T00:00:00Z', 0],
    ['2030-01-31T08:00:00.123Z', Date.UTC(2030, 0, 31, 8, 0, 0, 123)],
    ['2030-01-31t08:00:00z', Date.UTC(2030, 0, 31, 8)],
    ['2030-01-31T08:00:00.1Z', Date.UTC(2030, 0, 31, 8, 0, 0, 100)],
    ['2030-01-31T08:00:00.123999999Z', Date.UTC(2030, 0, 31, 8, 0, 0, 123)],
    ['2030-01-31T10:30:00+02:30', Date.UTC(2030, 0, 31, 8)],
    ['2030-01-31T00:30:00-07:30', Date.UTC(2030, 0, 31, 8)],
    ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
    ['0000-01-01T00:00:00Z', -62_167_219_200_000],
    ['9999-12-31T23:59:59.999Z', 253_402_300_799_999],
  ])('%s is read', (text, expected) => {
    expect(parseTimestamp(text)).toBe(expected);
  });

  test.each([
    ['2030-01-31', 'add the time of day and a zone'],
    ['2030-01-31T08:00:00', 'add a zone'],
    ['2030-01-31 08:00:00Z', 'must be an RFC 3339 time'],
    ['2030-01-31T08:00Z', 'must be an RFC 3339 time'],
    ['2029-02-29T00:00:00Z', 'no such day'],
    ['2030-13-01T00:00:00Z', 'no such day'],
    ['2030-00-01T00:00:00Z', 'no such day'],
    ['2030-04-31T00:00:00Z', 'no such day'],
    ['2030-01-31T24:00:00Z', 'no such'],
    ['2030-01-31T08:60:00Z', 'no such time of day'],
    ['2030-01-31T08:00:61Z', 'no such time of day'],
    ['2016-12-31T23:59:60Z', 'leap seconds'],
    ['2030-01-31T08:00:00+24:00', 'no such zone'],
    ['2030-01-31T08:00:00+0200', 'must be an RFC 3339 time'],
    ['0000-01-01T00:00:00+01:00', 'four digits'],
    ['9999-12-31T23:59:59-01:00', 'four digits'],
    ['1700000000', 'must be an RFC 3339 time'],
    [' 2030-01-31T08:00:00Z', 'must be an RFC 3339 time'],
    ['2030-01-31T08:00:00.Z', 'must be an RFC 3339 time'],
  ])('%j is refused and told why', (text, expected) => {
    expect(() => parseTimestamp(text)).toThrow(UnitError);
    expect(() => parseTimestamp(text)).toThrow(expected);
  });

  test('every time survives being written and read, in any zone', () => {
    const time = fc.integer({ min: -62_167_000_000_000, max: 253_402_000_000_000 });
    const zone = fc.integer({ min: -23 * 60, max: 23 * 60 });
    fc.assert(
      fc.property(time, zone, (at, minutes) => {
        expect(parseTimestamp(formatTimestamp(at))).toBe(at);
        const local = formatTimestamp(at + minutes * 60_000).slice(0, -1);
        const size = Math.abs(minutes);
        const text = `${local}${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
        expect(parseTimestamp(text)).toBe(at);
      }),
    );
  });

  test('no text makes the reader fail with anything but a UnitError', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9TZ:.+-]{0,30}$/)), (text) => {
        for (const parse of [parseTimestamp, parseDuration, parseByteSize, parseCount]) {
          try {
            expect(Number.isSafeInteger(parse(text))).toBe(true);
          } catch (error) {
            expect(error).toBeInstanceOf(UnitError);
          }
        }
      }),
    );
  });

  test('a time that has no four-digit year or no whole milliseconds is not written', () => {
    for (const bad of [Number.NaN, 0.5, 253_402_300_800_000, -62_167_219_200_001]) {
      expect(() => formatTimestamp(bad)).toThrow(RangeError);
    }
  });
});

test.each([
  [1000, 1000, 'now'],
  [1000, 46_000, '45s ago'],
  [0, 3 * 3_600_000 + 59 * 60_000, '3h ago'],
  [0, 20 * 86_400_000, '20d ago'],
  [300_000, 0, 'in 5m'],
  [Number.NaN, 0, '-'],
])('from %d to %d is %s', (then, now, expected) => {
  expect(humanAge(then, now)).toBe(expected);
});

test('a long wrong text is cut short in the message', () => {
  expect(() => parseDuration('x'.repeat(5000))).toThrow(/not "x{60}\.\.\."$/);
});
