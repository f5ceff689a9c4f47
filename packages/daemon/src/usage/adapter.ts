import type { DaemonSchema } from '@millrace/contract/daemon';

/** What usage needs to know of a backend; the registry's row has more. */
export interface UsageRow {
  readonly id: string;
  readonly tier: string;
  readonly installed: boolean;
  readonly enabled: boolean;
  /** Where the command line was found; empty when it was not. */
  readonly binary_path: string;
}

export type UsageStatus = DaemonSchema<'UsageStatus'>;

/** One usage window as its provider tells it. What the provider does not tell is null, never 0. */
export interface UsageWindow {
  readonly scope: string;
  readonly label: string;
  readonly usedPercent: number | null;
  /** Milliseconds since the epoch. */
  readonly resetsAt: number | null;
  readonly modelFamilies: readonly string[] | null;
  readonly models: readonly string[] | null;
}

/** The provider answered, and the answer made sense. */
export interface Seen {
  readonly ok: true;
  readonly windows: readonly UsageWindow[];
}

/** There is no answer. The words are ours: none of the provider's may reach the document. */
export interface Failed {
  readonly ok: false;
  readonly status: Exclude<UsageStatus, 'ok' | 'rate_limited'>;
  readonly error: string;
  /** Whether the provider was asked at all: without a login it is not. */
  readonly asked: boolean;
  /** How long the provider wants to be left alone. */
  readonly retryAfterMs?: number;
}

export type Reading = Seen | Failed;

/** How to ask one provider. Asking changes nothing: no file, no login, no routing. */
export interface UsageAdapter {
  /** The windows it reports, in words that hold before anything is known. */
  readonly windows: readonly { readonly scope: string; readonly label: string }[];
  /** Ends soon after `signal` is aborted; whoever aborts does not wait for it. */
  read(row: UsageRow, limits: CallLimits): Promise<Reading>;
}

export interface CallLimits {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export function failed(
  status: Failed['status'],
  error: string,
  more: { asked?: boolean; retryAfterMs?: number | undefined } = {},
): Failed {
  const { asked = true, retryAfterMs } = more;
  return {
    ok: false,
    status,
    error,
    asked,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** The windows of an adapter with nothing known about them. */
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
