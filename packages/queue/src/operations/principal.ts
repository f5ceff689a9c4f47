import { Grants, type TokenHolder } from '@millrace/kit/tokens';
import { fail } from './refusal.js';

/** In ascending order: each role includes the ones before it. */
export const roles = ['submitter', 'operator', 'admin'] as const;
export type Role = (typeof roles)[number];

/** The caller and its roles on queues. */
export type Principal = TokenHolder<Role>;

export const anonymous: Principal = {
  id: 'anonymous',
  principal: 'anonymous',
  grants: new Grants<Role>(roles, []),
  expiresAt: undefined,
};

/** The refusal does not reveal whether the queue exists. */
export function requireGrant({ grants }: Principal, queue: string, role: Role): void {
  if (grants.allows(queue, role)) return;
  throw fail('FORBIDDEN', `This needs the role ${role} on the queue ${queue}, which you lack.`);
}

export function requireGrantSomewhere({ grants }: Principal, role: Role): void {
  if (grants.allowsSomewhere(role)) return;
  throw fail('FORBIDDEN', `This needs the role ${role} on some queue, and you have it on none.`);
}
