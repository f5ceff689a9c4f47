import { byId, isLocal, type Backend, type RegistryState } from './backend.js';

/**
 * Which backends the router may ask, in order: eligible free ones, the default first and then by
 * id, and the local model last. A paid, unclassified or disabled backend is never among them,
 * and there is no way on from the end of the walk: whoever comes there does without.
 */
export function walk({ backends, settings }: RegistryState, now: number): Backend[] {
  const local = backends.filter((backend) => isLocal(backend) && backend.enabled);
  if (settings.internal_thinking_mode === 'local_only') return local;
  const free = backends
    .filter((backend) => isEligible(backend, now))
    .toSorted((a, b) => Number(b.default) - Number(a.default) || byId(a, b));
  return [...free, ...local];
}

/** May the router call this command line now? */
export function isEligible(backend: Backend, now: number): boolean {
  return (
    !isLocal(backend) &&
    backend.installed &&
    backend.enabled &&
    backend.tier === 'free' &&
    backend.limited_until <= now
  );
}

/** May this backend still be asked, after others before it in the walk took their time? */
export function isStillInWalk(state: RegistryState, id: string, now: number): boolean {
  return walk(state, now).some((backend) => backend.id === id);
}
