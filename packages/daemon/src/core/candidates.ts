import { byId, isLocal, type Backend, type RegistryState } from './backend.js';

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
