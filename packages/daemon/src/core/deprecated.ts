import { isLocal, type AssignableTier, type RegistryState } from './backend.js';
import { withPreferences } from './changes.js';

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
