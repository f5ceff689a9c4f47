import { Grants, type RoleLevels, type TokenHolder } from '@millrace/kit/tokens';
import { fail } from './refusal.js';

export type Role = 'submitter' | 'worker' | 'operator' | 'admin';

/** In ascending order; a submitter cannot claim and a worker cannot submit. */
export const roleLevels: RoleLevels<Role> = [['submitter', 'worker'], 'operator', 'admin'];

/** The caller and its roles on queues. */
export type Principal = TokenHolder<Role>;

export const anonymous: Principal = {
  id: 'anonymous',
  principal: 'anonymous',
  grants: new Grants<Role>(roleLevels, []),
  expiresAt: undefined,
};

/** Whether the caller has any role on the queue. If not, its tasks and jobs do not exist for it. */
export function hasGrant({ grants }: Principal, queue: string): boolean {
  return grants.allows(queue, 'submitter') || grants.allows(queue, 'worker');
}

/** The refusal does not reveal whether the queue exists. */
export function requireGrant({ grants }: Principal, queue: string, role: Role): void {
  if (grants.allows(queue, role)) return;
  throw fail('FORBIDDEN', `This needs the role ${role} on the queue ${queue}, which you lack.`);
}

export function requireGrantSomewhere({ grants }: Principal, role: Role): void {
  if (grants.allowsSomewhere(role)) return;
  throw fail('FORBIDDEN', `This needs the role ${role} on some queue, and you have it on none.`);
}
