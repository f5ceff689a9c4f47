import { daemonCodes, type DaemonOperations } from '@millrace/contract/daemon';
import { failWith, type FieldError } from '@millrace/kit/errors';
import type { Handlers } from '@millrace/kit/http';

/** A refusal of the daemon: `throw fail('BACKEND_NOT_FOUND', '...')`. */
export const fail = failWith(daemonCodes);

/** The refusal of one field of a request. */
export function invalid(field: string, message: string): Error {
  const errors: FieldError[] = [{ pointer: `/${field}`, message }];
  return fail('INVALID_REQUEST', `\`${field}\` ${message}.`, { errors });
}

/** The authenticated caller of a request. */
export interface Caller {
  /** For the access log. */
  name: string;
  access: 'full' | 'read_only';
  /** The session whose own token was sent. */
  self?: string | undefined;
  /** Likewise, where its rights are limited to what is its own. */
  agent?: string | undefined;
}

/** Operations that the daemon serves: its contract except the webhook, which it sends. */
export type ServedOperations = Omit<DaemonOperations, 'notify'>;
export type ServedHandlers = Handlers<ServedOperations, Caller>;

/** The refusal of what an agent may not do with its own token. */
export function beyondRights(): Error {
  return fail(
    'FORBIDDEN',
    'The token of an agent is limited to the agents that it has started and to questions of its ' +
      'own. The setting agents.token_rights: full lifts that.',
  );
}
