/**
 * Parses and formats durations, sizes, counts and timestamps. Every `parse...` is strict and throws
 * a `UnitError` whose message starts with "must be", so that the caller prepends the name of the
 * input: `--since must be a duration such as 15m, not "soon"`.
 *
 * `format...` is exact and can be parsed again; `human...` rounds, for tables.
 */
export class UnitError extends Error {
  override readonly name = 'UnitError';

  /** Names the expected form and shows the input. */
  static expected(expected: string, text: string, hint = ''): UnitError {
    const shown = text.length > 60 ? `${text.slice(0, 60)}...` : text;
    return new UnitError(
      `must be ${expected}, not ${JSON.stringify(shown)}${hint && ` (${hint})`}`,
    );
  }
}

type Unit = readonly [name: string, size: number];

const durationUnits: readonly Unit[] = [
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
];
const byteUnits: readonly Unit[] = [
  ['TiB', 2 ** 40],
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
  ['TB', 1e12],
  ['GB', 1e9],
  ['MB', 1e6],
  ['kB', 1e3],
  ['KB', 1e3],
  ['B', 1],
];
const countUnits: readonly Unit[] = [
  ['G', 1e9],
  ['M', 1e6],
  ['k', 1e3],
];

export const durationExample = 'a duration such as 500ms, 15m, 1h30m or 7d';
export const byteSizeExample = 'a size such as 256KiB, 1GiB or 1MB';
export const countExample = 'a count such as 500, 200k or 1.5M';
export const timestampExample = 'an RFC 3339 time such as 2030-01-31T08:00:00Z';

const durationPart = /(\d+(?:\.\d+)?)(ms|[wdhms])/y;

/** `1h30m` in milliseconds. Units go from large to small, each at most once. */
export function parseDuration(text: string): number {
  if (text === '0') return 0;
  const refuse = (hint = '') => UnitError.expected(durationExample, text, hint);
  if (/^\d+(\.\d+)?$/.test(text)) throw refuse(`add a unit: ${text}s or ${text}m`);
  let total = 0;
  let at = 0;
  let previous = -1;
  while (at < text.length) {
    durationPart.lastIndex = at;
    const part = durationPart.exec(text);
    if (!part) throw refuse();
    const unit = durationUnits.findIndex(([name]) => name === part[2]);
    if (unit <= previous) throw refuse('units go from large to small, each once');
    total += scale(part[1]!, durationUnits[unit]![1], () =>
      refuse('the smallest step is one millisecond'),
    );
    previous = unit;
    at += part[0].length;
  }
  if (previous < 0) throw refuse();
  if (!Number.isSafeInteger(total)) throw refuse('that is too long');
  return total;
}

/** Exact: `5400000` is `1h30m`. */
export function formatDuration(durationMs: number): string {
  let left = wholeNumber(durationMs, 'A duration in milliseconds');
  if (left === 0) return '0s';
  let text = '';
  for (const [name, size] of durationUnits.slice(1)) {
    const count = Math.floor(left / size);
    if (count > 0) text += `${count}${name}`;
    left -= count * size;
  }
  return text;
}

/** `256KiB` in bytes; a bare number is bytes. */
export function parseByteSize(text: string): number {
  const refuse = (hint = '') => UnitError.expected(byteSizeExample, text, hint);
  const match = /^(\d+(?:\.\d+)?) ?([A-Za-z]*)$/.exec(text);
  if (!match) throw refuse();
  const [number, name] = [match[1]!, match[2]!];
  const unit = name === '' ? 1 : byteUnits.find(([known]) => known === name)?.[1];
  if (unit === undefined) throw refuse(byteHint(name));
  const bytes = scale(number, unit, () => refuse('that is not a whole number of bytes'));
  if (!Number.isSafeInteger(bytes)) throw refuse('that is too large');
  return bytes;
}

function byteHint(name: string): string {
  const letter = name[0]!.toUpperCase();
  if (!'KMGT'.includes(letter)) return 'units are B, KiB, MiB, GiB, TiB, kB, MB, GB, TB';
  return `${letter}iB counts in 1024s, ${letter === 'K' ? 'k' : letter}B in 1000s`;
}

/** Exact, in the largest unit that divides evenly: `1073741824` is `1GiB`. */
export function formatByteSize(bytes: number): string {
  wholeNumber(bytes, 'A size in bytes');
  if (bytes === 0) return '0B';
  const [name, size] = byteUnits.find(([, unit]) => bytes % unit === 0)!;
  return `${bytes / size}${name}`;
}

/** `200k` is 200000. Underscores may group digits. */
export function parseCount(text: string): number {
  const refuse = (hint = '') => UnitError.expected(countExample, text, hint);
  const match = /^(\d+(?:_\d+)*(?:\.\d+)?)([A-Za-z]?)$/.exec(text);
  if (!match) throw refuse();
  const [number, letter] = [match[1]!, match[2]!];
  const unit = countUnits.find(([name]) => name.toLowerCase() === letter.toLowerCase())?.[1];
  if (letter !== '' && unit === undefined) {
    throw refuse('k is thousand, M is million, G is billion');
  }
  const count = scale(number.replaceAll('_', ''), unit ?? 1, () =>
    refuse('that is not a whole number'),
  );
  if (!Number.isSafeInteger(count)) throw refuse('that is too large');
  return count;
}

/** Exact: `200000` is `200k`, `1234` is `1234`. */
export function formatCount(count: number): string {
  wholeNumber(count, 'A count');
  const unit = count === 0 ? undefined : countUnits.find(([, size]) => count % size === 0);
  return unit ? `${count / unit[1]}${unit[0]}` : String(count);
}

// Doubles cannot represent 0.1, so the fraction is scaled as an integer.
function scale(number: string, unit: number, refuse: () => UnitError): number {
  const [whole, fraction = ''] = number.split('.');
  if (fraction === '') return Number(whole) * unit;
  if (fraction.length > 15) throw refuse();
  const parts = BigInt(fraction) * BigInt(unit);
  const base = 10n ** BigInt(fraction.length);
  if (parts % base !== 0n) throw refuse();
  return Number(whole) * unit + Number(parts / base);
}

const timestampPattern =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** Milliseconds since the epoch of an RFC 3339 time; finer fractions are cut off. */
export function parseTimestamp(text: string): number {
  const refuse = (hint = '') => UnitError.expected(timestampExample, text, hint);
  const match = timestampPattern.exec(text);
  if (!match) throw refuse(timestampHint(text));
  const field = (index: number) => Number(match[index] ?? 0);
  const [year, month, day] = [field(1), field(2), field(3)];
  const [hour, minute, second] = [field(4), field(5), field(6)];
  if (second === 60) throw refuse('leap seconds are not supported');
  const date = new Date(0);
  // Date.UTC reads the years 0 to 99 as 1900 to 1999; the setters do not.
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, Number((match[7] ?? '').slice(0, 3).padEnd(3, '0')));
  if (hour > 23 || minute > 59 || second > 59) throw refuse('there is no such time of day');
  // A day or month that does not exist has rolled over into the next one.
  if (date.getUTCDate() !== day || date.getUTCMonth() !== month - 1) {
    throw refuse('there is no such day');
  }
  const [zoneHour, zoneMinute] = [field(9), field(10)];
  if (zoneHour > 23 || zoneMinute > 59) throw refuse('there is no such zone');
  const offsetMs = (zoneHour * 60 + zoneMinute) * 60_000 * (match[8] === '-' ? -1 : 1);
  const time = date.getTime() - offsetMs;
  if (!isFourDigitYear(time)) throw refuse('in UTC its year does not have four digits');
  return time;
}

function timestampHint(text: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return 'add the time of day and a zone';
  if (/^\d{4}-\d\d-\d\d[ T]\d\d:\d\d/i.test(text) && !/(z|[+-]\d\d:\d\d)$/i.test(text)) {
    return 'add a zone: Z or +02:00';
  }
  return '';
}

/** RFC 3339 in UTC with milliseconds: the only form in which Millrace writes timestamps. */
export function formatTimestamp(time: number): string {
  if (!Number.isInteger(time) || !isFourDigitYear(time)) {
    throw new RangeError(`A timestamp holds whole milliseconds of years 0 to 9999, not ${time}`);
  }
  return new Date(time).toISOString();
}

function isFourDigitYear(time: number): boolean {
  return time >= -62_167_219_200_000 && time <= 253_402_300_799_999;
}

/** For people: `45ms`, `1.2s`, `3m 20s`, `2d 4h`; two units at most. */
export function humanDuration(durationMs: number): string {
  if (!Number.isFinite(durationMs)) return '-';
  const sign = durationMs < 0 ? '-' : '';
  const size = Math.abs(durationMs);
  if (size < 999.5) return `${sign}${Math.round(size)}ms`;
  if (size < 9950) return `${sign}${trimZero((size / 1000).toFixed(1))}s`;
  const units = durationUnits.slice(1, -1);
  for (const [index, [name, unit]] of units.entries()) {
    const smaller = units[index + 1];
    // Rounded to the smaller unit first, so that 59.9 minutes read as 1h and not as 60m.
    const rounded = smaller ? Math.round(size / smaller[1]) * smaller[1] : roundTo(size, unit);
    if (rounded < unit) continue;
    const rest = smaller ? Math.round((rounded % unit) / smaller[1]) : 0;
    return `${sign}${Math.floor(rounded / unit)}${name}${rest > 0 ? ` ${rest}${smaller![0]}` : ''}`;
  }
  return `${sign}${Math.round(size / 1000)}s`;
}

/** For people: `512 B`, `1.5 MiB`. */
export function humanBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return '-';
  return humanScaled(bytes, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'], 1024, ' ');
}

/** For people: `950`, `1.2k`, `3.4M`. */
export function humanCount(count: number): string {
  if (!Number.isFinite(count)) return '-';
  return humanScaled(count, ['', 'k', 'M', 'G', 'T'], 1000, '');
}

/** For people: how long ago `then` was, in one unit: `now`, `45s ago`, `3h ago`, `in 5m`. */
export function humanAge(then: number, now: number): string {
  if (!Number.isFinite(then)) return '-';
  const size = Math.abs(now - then);
  if (size < 1000) return 'now';
  const [name, unit] = durationUnits.slice(1, -1).find(([, each]) => size >= each)!;
  const text = `${Math.floor(size / unit)}${name}`;
  return then > now ? `in ${text}` : `${text} ago`;
}

function humanScaled(value: number, names: string[], base: number, space: string): string {
  const sign = value < 0 ? '-' : '';
  let size = Math.abs(value);
  let step = 0;
  // Compared as it will be printed, so that 1023.99 KiB reads as 1 MiB.
  while (step < names.length - 1 && Number(threeDigits(size, step)) >= base) {
    size /= base;
    step++;
  }
  return `${sign}${threeDigits(size, step)}${space}${names[step]}`.trimEnd();
}

function threeDigits(size: number, step: number): string {
  return step === 0 || size >= 99.95 ? String(Math.round(size)) : trimZero(size.toFixed(1));
}

function trimZero(text: string): string {
  return text.replace(/\.0$/, '');
}

function roundTo(value: number, step: number): number {
  return Math.round(value / step) * step;
}

function wholeNumber(value: number, what: string): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`${what} is a whole number of at least 0, not ${value}`);
}

const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:[Zz]|[+-](\d\d):(\d\d))$/;

/** Whether the text is an RFC 3339 timestamp, without a leap second, which `Date` lacks. */
export function isTimestamp(text: string): boolean {
  if (text.length > 40) return false;
  const match = rfc3339.exec(text);
  if (!match) return false;
  const [year, month, day, hour, minute, second, zoneHour, zoneMinute] = match
    .slice(1)
    .map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const inRange =
    hour < 24 && minute < 60 && second < 60 && zoneHour < 24 && zoneMinute < 60 && day >= 1;
  return inRange && month >= 1 && month <= 12 && day <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  // Day 0 of the next month is the last of this one. The offset keeps Date from reading the
  // years 0 to 99 as 1900 to 1999; the calendar repeats every 400 years.
  return new Date(Date.UTC(year + 400, month, 0)).getUTCDate();
}
