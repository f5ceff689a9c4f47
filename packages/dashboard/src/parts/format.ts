/** Formats of numbers, sizes and times. Unknown values are `–`, never 0. */
export const unknown = '–';

type Maybe = number | null | undefined;

/** 950, 12.3k, 4.56M. */
export function tokens(value: Maybe): string {
  if (value === null || value === undefined) return unknown;
  const size = Math.abs(value);
  if (size < 1000) return String(Math.round(value));
  if (size < 999_950) return `${trim(value / 1000, size < 99_950 ? 1 : 0)}k`;
  if (size < 999_950_000) return `${trim(value / 1e6, 2)}M`;
  return `${trim(value / 1e9, 2)}B`;
}

/** $0.0042, $1.23, $1,234. */
export function dollars(value: Maybe): string {
  if (value === null || value === undefined) return unknown;
  if (value !== 0 && Math.abs(value) < 0.005) return `$${value.toPrecision(1)}`;
  const digits = Math.abs(value) >= 1000 ? 0 : 2;
  return value.toLocaleString('en-US', {
    style: 'currency',
    currency: 'USD',
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** Axis labels with as many digits as their step needs: $0.002, $0.004, $0.006. */
export function dollarTicks(values: readonly number[]): string[] {
  const step = Math.abs((values[1] ?? 0) - (values[0] ?? 0));
  let digits = step >= 1 && step % 1 === 0 ? 0 : 2;
  while (digits < 8 && Math.abs(Number(step.toFixed(digits)) - step) > step / 100) digits++;
  return values.map((value) => {
    const size = Math.abs(value).toLocaleString('en-US', {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    });
    return `${value < 0 ? '−' : ''}$${size}`;
  });
}

export function percent(value: Maybe): string {
  if (value === null || value === undefined) return unknown;
  return `${trim(value, Math.abs(value) < 10 ? 1 : 0)}%`;
}

/** 1.5 GiB. */
export function bytes(value: Maybe): string {
  if (value === null || value === undefined) return unknown;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let left = value;
  let unit = 0;
  while (Math.abs(left) >= 1023.5 && unit < units.length - 1) {
    left /= 1024;
    unit++;
  }
  return `${trim(left, unit === 0 || left >= 100 ? 0 : 1)} ${units[unit]}`;
}

export function count(value: Maybe): string {
  return value === null || value === undefined ? unknown : value.toLocaleString('en-US');
}

/** 850 ms, 12 s, 3 min, 2 h 5 min, 4 d. */
export function duration(ms: Maybe): string {
  if (ms === null || ms === undefined) return unknown;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d`;
}

/** A latency: 0.4 ms, 12 ms, 1.25 s, 3 min. */
export function millis(ms: Maybe): string {
  if (ms === null || ms === undefined) return unknown;
  if (ms < 1000) return `${trim(ms, ms < 10 ? 1 : 0)} ms`;
  return ms < 60_000 ? `${trim(ms / 1000, 2)} s` : duration(ms);
}

const durationUnits = [
  { ms: 3_600_000, name: 'h' },
  { ms: 60_000, name: 'min' },
  { ms: 1000, name: 's' },
  { ms: 1, name: 'ms' },
] as const;

/** Axis labels in one unit, so that equal steps look equal: 0.5 s, 1 s, 1.5 s. */
export function durationTicks(values: readonly number[]): string[] {
  const top = Math.max(...values.map((value) => Math.abs(value)), 0);
  const isRound = (ms: number) =>
    values.every((value) => Math.abs((value * 10) / ms - Math.round((value * 10) / ms)) < 1e-6);
  // The largest unit in which every label has at most one digit after the point.
  const unit = durationUnits.find(({ ms }) => top >= ms && isRound(ms)) ?? durationUnits[3];
  return values.map((value) => `${trim(value / unit.ms, 1)} ${unit.name}`);
}

/** A time relative to now: `just now`, `5 min ago`, `in 2 h`. */
export function relative(at: number, now: number): string {
  const distance = at - now;
  const size = Math.abs(distance);
  if (size < 5000) return 'just now';
  const text = size < 60_000 ? `${Math.round(size / 1000)} s` : span(size);
  return distance < 0 ? `${text} ago` : `in ${text}`;
}

function span(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.round(ms / 3_600_000);
  return hours < 48 ? `${hours} h` : `${Math.round(ms / 86_400_000)} d`;
}

/** Date and time in the local time zone. */
export function exact(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Replaces underscores: `waiting_for_input`. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}

/** The last part of a path. */
export function baseName(path: string): string {
  return (
    path
      .replace(/[/\\]+$/, '')
      .split(/[/\\]/)
      .at(-1) || path
  );
}

function trim(value: number, digits: number): string {
  return value
    .toFixed(digits)
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '');
}
