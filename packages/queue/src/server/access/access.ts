import type { Clock } from '@millrace/kit/clock';
import type { OperationDescription } from '@millrace/kit/http';
import { bearerToken, type TokenSet } from '@millrace/kit/tokens';
import { requireGrant, requireGrantSomewhere } from '../../operations/base/principal.js';
import type { Principal, Role } from '../../operations/base/principal.js';
import { fail } from '../../operations/base/refusal.js';

/** Authenticates callers by bearer token. */
export function authenticate(
  authorization: string | undefined,
  tokens: TokenSet<Role>,
  clock: Clock,
): Principal {
  const token = bearerToken(authorization);
  if (token === undefined) {
    throw fail('UNAUTHENTICATED', 'Send a token as "Authorization: Bearer <token>".');
  }
  const found = tokens.find(token, clock.now());
  if (found.outcome === 'known') return found.holder;
  throw found.outcome === 'expired'
    ? fail('UNAUTHENTICATED', `The token ${found.holder.id} has expired; ask for a new one.`)
    : fail('UNAUTHENTICATED', 'The token is not known here, or was revoked.');
}

/**
 * Checks grants by the path alone; for a task or a job, the operation checks its queue later.
 */
export function authorize(
  caller: Principal,
  operation: OperationDescription,
  params: Readonly<Record<string, string>>,
): void {
  const role = operation.minRole as Role;
  switch (operation.extensions['x-grant-scope']) {
    case 'queue':
      requireGrant(caller, params['queue']!, role);
      return;
    case 'any':
      requireGrantSomewhere(caller, role);
      return;
    case 'task':
    case 'job':
      return;
    default:
      throw new Error(`${operation.id} does not say what its grant is checked on`);
  }
}
