import { isLocal, type AssignableTier, type RegistryState } from './backend.js';
import { withPreferences } from './changes.js';

/** What the config keys `autopilot.brain.*` of older versions said. */
export interface DeprecatedSettings {
  free: readonly string[];
  subscription: readonly string[];
  pay_per_use: readonly string[];
  allow_pay_per_use: boolean | undefined;
}

// An id that stands in several lists gets the last tier: in doubt a backend costs money.
const order: readonly (AssignableTier & keyof DeprecatedSettings)[] = [
  'free',
  'subscription',
  'pay_per_use',
];

/** The state with the old settings taken over, and the ids that name no backend. */
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
      // What somebody chose in the registry counts more than an old file.
      else if (backend.tier === 'unclassified') next = withPreferences(next, id, { tier });
    }
  }
  const allowed = deprecated.allow_pay_per_use;
  if (allowed !== undefined) {
    next = { ...next, settings: { ...next.settings, allow_paid_autopilot: allowed } };
  }
  return { state: next, unknown };
}
