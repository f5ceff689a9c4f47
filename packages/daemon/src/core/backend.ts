import type { DaemonSchema } from '@millrace/contract/daemon';
import { formatTimestamp } from '@millrace/kit/units';

export type Tier = DaemonSchema<'Tier'>;
export type AssignableTier = DaemonSchema<'AssignableTier'>;
export type Settings = DaemonSchema<'Settings'>;
export type ThinkingMode = DaemonSchema<'ThinkingMode'>;

/** Id of the local model, reserved: no agent CLI may use it. */
export const localId = 'local';

/** A backend as stored in the registry; times are milliseconds since the epoch. */
export interface Backend {
  id: string;
  /* Detection: result of the last rescan. */
  installed: boolean;
  binary_path: string;
  detected_at: number;
  /* Preferences of the user. A rescan does not change them. */
  tier: Tier;
  default: boolean;
  enabled: boolean;
  /** Skipped by the router until then; 0 when it was never limited. */
  limited_until: number;
  /** How it supports the Agent Client Protocol; absent until it was checked. */
  acp?: AcpRow | null;
}

export type AcpRow = DaemonSchema<'AcpSource'>;

/** Result of detecting one backend on this machine. */
export interface Detection {
  id: string;
  installed: boolean;
  binaryPath: string;
  /** An adapter for the Agent Client Protocol; found without running anything. */
  adapter?: AcpRow | undefined;
}

/** Immutable state of the registry. */
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

/** A newly detected backend: enabled, and unclassified until the user assigns a tier. */
export function newBackend(
  { id, installed, binaryPath, adapter }: Detection,
  now: number,
): Backend {
  return {
    id,
    installed,
    binary_path: binaryPath,
    detected_at: now,
    tier: id === localId ? 'local' : 'unclassified',
    default: false,
    enabled: true,
    limited_until: 0,
    ...(adapter && { acp: adapter }),
  };
}

/** The row of the API. An expired cooldown is reported as null. */
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
    ...(backend.acp && { acp: backend.acp }),
  };
}

/** Stable order of ids, the same on every machine. */
export function byId(a: { id: string }, b: { id: string }): number {
  if (a.id === b.id) return 0;
  return a.id < b.id ? -1 : 1;
}
