import {
  isLocal,
  newBackend,
  type AssignableTier,
  type Backend,
  type Detection,
  type RegistryState,
} from './backend.js';

/*
 * Every change of the registry as a pure function from what is there to what is there next. The
 * store runs them one at a time on the newest state, so none can undo another.
 */

/** Takes over what a look at the machine saw; what people chose stays as it is. */
export function reconcile(
  state: RegistryState,
  detections: readonly Detection[],
  now: number,
): RegistryState {
  const seen = new Map(detections.map((detection) => [detection.id, detection]));
  const kept = state.backends.map((backend): Backend => {
    const detection = seen.get(backend.id);
    if (!detection) return backend;
    seen.delete(backend.id);
    const { installed, binaryPath } = detection;
    return { ...backend, installed, binary_path: binaryPath, detected_at: now };
  });
  const found = [...seen.values()].map((detection) => newBackend(detection, now));
  return { ...state, backends: [...kept, ...found] };
}

/** Makes one backend the default, and no other. */
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

/** Passes a backend over until `until`; a longer cooldown that it already has stays. */
export function withCooldown(state: RegistryState, id: string, until: number): RegistryState {
  return changeOne(state, id, (backend) =>
    isLocal(backend) || backend.limited_until >= until
      ? backend
      : { ...backend, limited_until: until },
  );
}

/** When a backend may be asked again: after the wait of the settings, or when it said itself. */
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
