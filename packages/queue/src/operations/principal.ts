import { Grants, type TokenHolder } from '@millrace/kit/tokens';
import { fail } from './refusal.js';

/** In rising order: each contains those before it. */
export const roles = ['submitter', 'operator', 'admin'] as const;
export type Role = (typeof roles)[number];

/** Who calls, and what they may do on which queues. */
export type Principal = TokenHolder<Role>;

export const anonymous: Principal = {
  id: 'anonymous',
  principal: 'anonymous',
  grants: new Grants<Role>(roles, []),
  expiresAt: undefined,
};

/** The refusal is the same whether or not there is such a queue. */
export function requireGrant({ grants }: Principal, queue: string, role: Role): void {
  if (grants.allows(queue, role)) return;
  throw fail('FORBIDDEN', `This takes the role ${role} on the queue ${queue}, which you lack.`);
}

export function requireGrantSomewhere({ grants }: Principal, role: Role): void {
  if (grants.allowsSomewhere(role)) return;
  throw fail('FORBIDDEN', `This takes the role ${role} on some queue, and you have it on none.`);
}
