import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp } from '@millrace/kit/units';

export type Tier = DaemonSchema<'Tier'>;
export type AssignableTier = DaemonSchema<'AssignableTier'>;
export type Settings = DaemonSchema<'Settings'>;
export type ThinkingMode = DaemonSchema<'ThinkingMode'>;

/** The id of the local model, which no command line may bear. */
export const localId = 'local';

/** A backend as the registry keeps it; times are milliseconds since the epoch. */
export interface Backend {
  id: string;
  /* Detection: what the last rescan saw. */
  installed: boolean;
  binary_path: string;
  detected_at: number;
  /* Preferences: what a person chose. A rescan leaves them alone. */
  tier: Tier;
  default: boolean;
  enabled: boolean;
  /** The router's: skipped until then; 0 when it was never limited. */
  limited_until: number;
}

/** What a look at the machine found out about one backend. */
export interface Detection {
  id: string;
  installed: boolean;
  binaryPath: string;
}

/** Everything the registry holds. A change makes a new one. */
export interface RegistryState {
  backends: readonly Backend[];
  settings: Settings;
}

export const firstSettings: Settings = {
  internal_thinking_mode: 'free_plus_local',
  allow_paid_autopilot: false,
};

export function isLocal({ id }: { id: string }): boolean {
  return id === localId;
}

/** A backend that was just found: usable, and not free until somebody says so. */
export function newBackend({ id, installed, binaryPath }: Detection, now: number): Backend {
  return {
    id,
    installed,
    binary_path: binaryPath,
    detected_at: now,
    tier: id === localId ? 'local' : 'unclassified',
    default: false,
    enabled: true,
    limited_until: 0,
  };
}

/** The row that callers see. A cooldown that is over is none. */
export function rowOf(backend: Backend, now: number): DaemonSchema<'BackendRow'> {
  const isLimited = !isLocal(backend) && backend.limited_until > now;
  return {
    id: backend.id,
    installed: backend.installed,
    binary_path: backend.binary_path,
    detected_at: formatTimestamp(backend.detected_at),
    tier: backend.tier,
    default: backend.default,
    enabled: backend.enabled,
    is_local: isLocal(backend),
    limited_until: isLimited ? formatTimestamp(backend.limited_until) : null,
  };
}

/** Stable order of ids, the same on every machine. */
export function byId(a: { id: string }, b: { id: string }): number {
  if (a.id === b.id) return 0;
  return a.id < b.id ? -1 : 1;
}
