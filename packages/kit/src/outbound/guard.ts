import type { Allowlist } from './allowlist.js';
import { webhookPolicy, type AddressPolicy } from './policy.js';
import type { Target } from './target.js';

/** Decides which URLs may be called, and at which addresses. */
export type Guard = (target: Target) => { policy: AddressPolicy } | { blocked: string };

/** For queue callbacks: only URLs on the allowlist. */
export function callbackGuard(allowlist: Allowlist): Guard {
  return (target) => {
    const match = allowlist.matchTarget(target);
    return match.allowed ? { policy: match.policy } : { blocked: match.reason };
  };
}

/** For the daemon's webhooks: every URL, but no link-local address. */
export const webhookGuard: Guard = () => ({ policy: webhookPolicy });
