import {
  isLocal,
  newBackend,
  type AcpRow,
  type AssignableTier,
  type Backend,
  type Detection,
  type RegistryState,
} from './backend.js';

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
