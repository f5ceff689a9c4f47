import { parseDuration, parseTimestamp, UnitError } from '@millrace/kit/units';

const dayMs = 86_400_000;
/** A reset further away than this was misread. */
const farthestMs = 32 * dayMs;

/**
 * When a program says that its limit ends, as milliseconds since the epoch; undefined when it does
 * not say, or says it in a way that we cannot read with certainty. Of several times the latest.
 */
export function resetTimeIn(text: string, now: number): number | undefined {
  const found = [...fields(text, now), ...spans(text, now), ...clockTimes(text, now)];
  const sane = found.filter((time) => time > now && time - now <= farthestMs);
  return sane.length === 0 ? undefined : Math.round(Math.max(...sane));
}

const namedMoment =
  /["']?\b(?:resets?_?at|resetTime|quotaResetTimeStamp|reset_time)\b["']?\s*[:=]\s*["']?([\w:.+-]+)/gi;
const namedSpan =
  /["']?\b(?:resets?_?in_?seconds|retry[-_ ]?after(?:_?seconds)?|retryDelay|quotaResetDelay)\b["']?\s*[:=]\s*["']?([\d.]+(?:ms|[hms])?(?:[\d.]+(?:ms|[hms]))*)/gi;
const limitReached = /limit reached\|(\d{10})\b/gi;

/** Fields of JSON and headers: `"resetsAt": 1768469400`, `Retry-After: 30`. */
function fields(text: string, now: number): number[] {
  const moments = [...matches(namedMoment, text), ...matches(limitReached, text)].map(momentOf);
  const lengths = matches(namedSpan, text).map((span) =>
    /^\d+(?:\.\d+)?$/.test(span) ? Number(span) * 1000 : lengthOf(span),
  );
  return [...moments.filter(isNumber), ...lengths.filter(isNumber).map((length) => now + length)];
}

/** Seconds or milliseconds since the epoch, or RFC 3339. */
function momentOf(text: string): number | undefined {
  if (/^\d{10}(?:\.\d+)?$/.test(text)) return Number(text) * 1000;
  if (/^\d{13}$/.test(text)) return Number(text);
  try {
    return parseTimestamp(text);
  } catch (error) {
    if (error instanceof UnitError) return undefined;
    throw error;
  }
}

const spokenSpan =
  /\b(?:resets?|try again|retry|available|wait)\s+(?:in|after|for)?\s*((?:\d+(?:\.\d+)?\s*(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b[\s,]*(?:and\s+)?)+)/gi;
const spokenPart = /(\d+(?:\.\d+)?)\s*(d|h|m|s)/gi;

/** `Try again in 3 hours 5 minutes`, `will reset after 2h33m12s`. */
function spans(text: string, now: number): number[] {
  const spaced = text.replaceAll(/(\d[dhms])(?=\d)/gi, '$1 ');
  return matches(spokenSpan, spaced)
    .map(lengthOf)
    .filter(isNumber)
    .map((length) => now + length);
}

const unitMs: Readonly<Record<string, number>> = { d: dayMs, h: 3_600_000, m: 60_000, s: 1000 };

function lengthOf(text: string): number | undefined {
  try {
    return parseDuration(text.trim());
  } catch (error) {
    if (!(error instanceof UnitError)) throw error;
  }
  let length = 0;
  for (const [, amount, unit] of text.matchAll(spokenPart)) {
    length += Number(amount) * (unitMs[unit!.toLowerCase()] ?? 0);
  }
  return length > 0 ? length : undefined;
}

const clockTime =
  /\b(?:resets?|try again)(?:\s+(?:at|on))?\s+(?:([a-z]{3})[a-z]*\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(?:at\s+)?)?(\d{1,2})(?::(\d\d))?\s*([ap]m)\b(?:\s*\(([\w/+-]+)\))?/gi;
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** `resets 3pm`, `resets 3:45pm (Europe/Berlin)`, `resets Oct 9 at 5pm`: the next such moment. */
function clockTimes(text: string, now: number): number[] {
  const found: number[] = [];
  for (const [, month, day, hour, minute, half, zone] of text.matchAll(clockTime)) {
    if (Number(hour) < 1 || Number(hour) > 12 || Number(minute ?? 0) > 59) continue;
    const wanted: WallTime = {
      month: month === undefined ? undefined : months.indexOf(month.toLowerCase()),
      day: day === undefined ? undefined : Number(day),
      hour: (Number(hour) % 12) + (half!.toLowerCase() === 'pm' ? 12 : 0),
      minute: Number(minute ?? 0),
    };
    if (wanted.month === -1) continue;
    const time = nextMoment(wanted, now, zone);
    if (time !== undefined) found.push(time);
  }
  return found;
}

interface WallTime {
  month: number | undefined;
  day: number | undefined;
  hour: number;
  minute: number;
}

/** The first minute after `now` that a clock on the wall of that zone shows so. */
function nextMoment(wanted: WallTime, now: number, zone: string | undefined): number | undefined {
  const wall = wallClock(zone);
  if (!wall) return undefined;
  // Zones differ from UTC by multiples of 15 minutes, so candidates lie on those of the hour.
  const start = now - (now % 900_000) + (wanted.minute % 15) * 60_000;
  for (let time = start; time <= now + farthestMs; time += 900_000) {
    if (time <= now) continue;
    const at = wall(time);
    if (at.hour !== wanted.hour || at.minute !== wanted.minute) continue;
    if (wanted.month === undefined || (at.month === wanted.month && at.day === wanted.day)) {
      return time;
    }
  }
  return undefined;
}

function wallClock(zone: string | undefined) {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      ...(zone !== undefined && { timeZone: zone }),
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      hourCycle: 'h23',
    });
  } catch (error) {
    // An unknown time zone: better no time than a wrong one.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
  return (time: number) => {
    const parts = new Map(format.formatToParts(time).map(({ type, value }) => [type, value]));
    const number = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type));
    return {
      month: number('month') - 1,
      day: number('day'),
      hour: number('hour'),
      minute: number('minute'),
    };
  };
}

function matches(pattern: RegExp, text: string): string[] {
  return [...text.matchAll(pattern)].map((match) => match[1]!);
}

function isNumber(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value);
}
