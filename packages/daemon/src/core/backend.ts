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

/*
 * Changes of the registry as pure functions of its state. The store applies them one at a time to
 * the latest state, so no change is lost.
 */

/** Applies detection results; preferences of the user stay. */
export function reconcile(
  state: RegistryState,
  detections: readonly Detection[],
  now: number,
): RegistryState {
  const seen = new Map(detections.map((detection) => [detection.id, detection]));
  const updated = state.backends.map((backend): Backend => {
    const detection = seen.get(backend.id);
    if (!detection) return backend;
    seen.delete(backend.id);
    const { installed, binaryPath, adapter } = detection;
    const isSame = installed && binaryPath === backend.binary_path;
    // Whether the program itself speaks ACP was found by running it, and holds while it stays.
    const acp = adapter ?? (isSame && backend.acp?.via === 'native' ? backend.acp : null);
    const isNoted = acp !== null || backend.acp !== undefined;
    const seenNow = { installed, binary_path: binaryPath, detected_at: now };
    return { ...backend, ...seenNow, ...(isNoted && { acp }) };
  });
  const found = [...seen.values()].map((detection) => newBackend(detection, now));
  return { ...state, backends: [...updated, ...found] };
}

/** Makes one backend the only default. */
export function withDefault(state: RegistryState, id: string): RegistryState {
  return mapBackends(state, (backend) => {
    const isDefault = backend.id === id;
    return backend.default === isDefault ? backend : { ...backend, default: isDefault };
  });
}

export interface Preferences {
  tier?: AssignableTier | undefined;
  enabled?: boolean | undefined;
}

export function withPreferences(
  state: RegistryState,
  id: string,
  { tier, enabled }: Preferences,
): RegistryState {
  return changeOne(state, id, (backend) => ({
    ...backend,
    tier: tier ?? backend.tier,
    enabled: enabled ?? backend.enabled,
  }));
}

/** Skips a backend until `until`; a longer existing cooldown stays. */
export function withCooldown(state: RegistryState, id: string, until: number): RegistryState {
  return changeOne(state, id, (backend) =>
    isLocal(backend) || backend.limited_until >= until
      ? backend
      : { ...backend, limited_until: until },
  );
}

/** End of a cooldown: after the configured wait, or at the reset time the provider reported. */
export function cooldownEnd(now: number, retryMs: number, resetAt: number | undefined): number {
  return Math.max(now + retryMs, resetAt ?? 0);
}

function changeOne(
  state: RegistryState,
  id: string,
  change: (backend: Backend) => Backend,
): RegistryState {
  return mapBackends(state, (backend) => (backend.id === id ? change(backend) : backend));
}

function mapBackends(state: RegistryState, change: (backend: Backend) => Backend): RegistryState {
  return { ...state, backends: state.backends.map(change) };
}

/** Applies how backends speak the Agent Client Protocol. */
export function withAcp(
  state: RegistryState,
  found: ReadonlyMap<string, AcpRow | null>,
): RegistryState {
  return mapBackends(state, (backend) => {
    const acp = found.get(backend.id);
    const isKnown = JSON.stringify(acp) === JSON.stringify(backend.acp ?? null);
    return acp === undefined || isKnown ? backend : { ...backend, acp };
  });
}

/**
 * Candidate backends of the router, in order: eligible free ones, the default first and then by
 * id, and the local model last. Paid, unclassified and disabled backends are never candidates.
 */
export function candidates({ backends, settings }: RegistryState, now: number): Backend[] {
  const local = backends.filter((backend) => isLocal(backend) && backend.enabled);
  if (settings.internal_thinking_mode === 'local_only') return local;
  const free = backends
    .filter((backend) => isEligible(backend, now))
    .toSorted((a, b) => Number(b.default) - Number(a.default) || byId(a, b));
  return [...free, ...local];
}

/** Whether the router may call this CLI now. */
export function isEligible(backend: Backend, now: number): boolean {
  return (
    !isLocal(backend) &&
    backend.installed &&
    backend.enabled &&
    backend.tier === 'free' &&
    backend.limited_until <= now
  );
}

/** Whether this backend is still a candidate after earlier ones took their time. */
export function isStillCandidate(state: RegistryState, id: string, now: number): boolean {
  return candidates(state, now).some((backend) => backend.id === id);
}

/** Values of the deprecated config keys `autopilot.brain.*`. */
export interface DeprecatedSettings {
  free: readonly string[];
  subscription: readonly string[];
  pay_per_use: readonly string[];
  allow_pay_per_use: boolean | undefined;
}

// An id in several lists gets the last tier: in doubt, a backend costs money.
const order: readonly (AssignableTier & keyof DeprecatedSettings)[] = [
  'free',
  'subscription',
  'pay_per_use',
];

/** The state with the deprecated settings applied, and the ids that match no backend. */
export function importDeprecated(
  state: RegistryState,
  deprecated: DeprecatedSettings,
): { state: RegistryState; unknown: string[] } {
  const unknown: string[] = [];
  let next = state;
  for (const tier of order) {
    for (const id of deprecated[tier]) {
      const backend = state.backends.find((known) => known.id === id);
      if (!backend || isLocal(backend)) unknown.push(id);
      // A tier chosen in the registry takes precedence over the old file.
      else if (backend.tier === 'unclassified') next = withPreferences(next, id, { tier });
    }
  }
  const allowed = deprecated.allow_pay_per_use;
  if (allowed !== undefined) {
    next = { ...next, settings: { ...next.settings, allow_paid_autopilot: allowed } };
  }
  return { state: next, unknown };
}
