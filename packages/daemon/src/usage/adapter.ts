import type { DaemonSchema } from '@millrace/contract/daemon';
import { parseTimestamp, UnitError } from '@millrace/kit/units';

/** The fields of a registry row that usage needs. */
export interface UsageRow {
  readonly id: string;
  readonly tier: string;
  readonly installed: boolean;
  readonly enabled: boolean;
  /** Path of the CLI; empty when not installed. */
  readonly binary_path: string;
}

export type UsageStatus = DaemonSchema<'UsageStatus'>;

/** One usage window. Values that the provider does not report are null, never 0. */
export interface UsageWindow {
  readonly scope: string;
  readonly label: string;
  readonly usedPercent: number | null;
  /** Milliseconds since the epoch. */
  readonly resetsAt: number | null;
  readonly modelFamilies: readonly string[] | null;
  readonly models: readonly string[] | null;
}

/** A valid response of the provider. */
export interface Seen {
  readonly ok: true;
  readonly windows: readonly UsageWindow[];
}

/** No valid response. The message never contains the provider's text. */
export interface Failed {
  readonly ok: false;
  readonly status: Exclude<UsageStatus, 'ok' | 'rate_limited'>;
  readonly error: string;
  /** Whether the provider was called; without a login it is not. */
  readonly wasRequested: boolean;
  /** The provider's Retry-After. */
  readonly retryAfterMs?: number;
}

export type Reading = Seen | Failed;

/** Reads the usage of one provider, without side effects on files, logins or routing. */
export interface UsageAdapter {
  /** Names of its windows, for use before the first reading. */
  readonly windows: readonly { readonly scope: string; readonly label: string }[];
  /** Ends soon after `signal` is aborted; the caller does not wait for it. */
  read(row: UsageRow, limits: CallLimits): Promise<Reading>;
}

export interface CallLimits {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export function failed(
  status: Failed['status'],
  error: string,
  more: { wasRequested?: boolean; retryAfterMs?: number | undefined } = {},
): Failed {
  const { wasRequested = true, retryAfterMs } = more;
  return {
    ok: false,
    status,
    error,
    wasRequested,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** A window that says nothing about models. */
export function windowOf(
  { scope, label }: UsageAdapter['windows'][number],
  usedPercent: number | null = null,
  resetsAt: number | null = null,
): UsageWindow {
  return { scope, label, usedPercent, resetsAt, modelFamilies: null, models: null };
}

/*
 * Parsers of single values in provider responses. Each returns null for an invalid value.
 */

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
