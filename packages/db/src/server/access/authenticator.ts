import type { Clock } from '@millrace/kit/clock';
import { bearerToken } from '@millrace/kit/tokens';
import { refuse } from '@millrace/engine/value/refusal';
import type { KeySet } from './keys.js';
import { local, type Principal } from './principal.js';

/** Credentials of a request: two HTTP headers or two gRPC metadata entries. */
export interface Credentials {
  readonly apiKey: string | undefined;
  readonly authorization: string | undefined;
}

/** Authenticates callers. Without keys (`auth: none`) everyone has full access. */
export class Authenticator {
  constructor(
    private readonly keys: { readonly current: KeySet } | undefined,
    private readonly clock: Clock,
  ) {}

  get needsKeys(): boolean {
    return this.keys !== undefined;
  }

  /** Refuses MISSING_KEY, UNKNOWN_KEY or EXPIRED_KEY. */
  identify({ apiKey, authorization }: Credentials): Principal {
    if (!this.keys) return local;
    const sent = apiKey || bearerToken(authorization);
    if (!sent) {
      throw refuse(
        'MISSING_KEY',
        'An API key is required. Send it as x-api-key or as Authorization: Bearer.',
      );
    }
    const found = this.keys.current.find(sent, this.clock.now());
    if (found.outcome === 'known') return found.principal;
    throw found.outcome === 'expired'
      ? refuse('EXPIRED_KEY', `The API key "${found.id}" has expired. Request a new one.`)
      : refuse('UNKNOWN_KEY', 'The API key is unknown or was revoked.');
  }
}
