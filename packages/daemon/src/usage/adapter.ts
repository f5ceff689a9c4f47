import type { DaemonSchema } from '@millrace/contract/daemon';

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

/** The windows of an adapter with unknown values. */
export function unknownWindows({ windows }: UsageAdapter): UsageWindow[] {
  return windows.map(({ scope, label }) => ({
    scope,
    label,
    usedPercent: null,
    resetsAt: null,
    modelFamilies: null,
    models: null,
  }));
}
