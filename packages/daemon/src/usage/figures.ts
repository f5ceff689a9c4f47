/*
 * Parsers of single values in provider responses. Each returns null for an invalid value.
 */
import { parseTimestamp, UnitError } from '@millrace/kit/units';

/** A map of JSON, or null. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  return value as Readonly<Record<string, unknown>>;
}

export function listOf(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) ? value : null;
}

/** Non-empty text, or null. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
}

/** A percentage from 0 on. Providers do report more than 100. */
export function percentOf(value: unknown): number | null {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) return null;
  return rounded(value);
}

/** How much is used when this fraction, from 0 to 1, is left. */
export function percentUsedOf(remaining: unknown): number | null {
  if (typeof remaining !== 'number' || !(remaining >= 0 && remaining <= 1)) return null;
  return rounded(100 * (1 - remaining));
}

/** Without the noise of binary fractions: 100 x (1 - 0.9) is 10. */
function rounded(percent: number): number {
  return Math.round(percent * 10_000) / 10_000;
}

/** The time of an RFC 3339 text. */
export function timeOfText(value: unknown): number | null {
  if (typeof value !== 'string') return null;
  try {
    return parseTimestamp(value);
  } catch (error) {
    if (error instanceof UnitError) return null;
    throw error;
  }
}

/** The time of a count since the epoch, of seconds or milliseconds, as a number or as digits. */
export function timeOfCount(value: unknown, unitMs: 1 | 1000): number | null {
  const count = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof count !== 'number' || !(count > 0)) return null;
  const time = Math.floor(count * unitMs);
  return time <= lastTime ? time : null;
}

/** The end of the year 9999, after which no timestamp can be written. */
const lastTime = 253_402_300_799_999;
