import type { IncomingHttpHeaders } from 'node:http';
import { bearerToken } from '@millrace/kit/tokens';
import { fail } from '../../core/refusals.js';
import { checkOrigin } from './origin.js';
import type { Throttle } from './throttle.js';
import type { Access, Tokens } from './tokens.js';

/** Who is calling. */
export interface Caller {
  /** For the access log. */
  name: string;
  access: Access;
}

/** Whoever comes over loopback while there is no token, and whoever asks for what is public. */
export const anyone: Caller = { name: 'anyone', access: 'full' };

const holder: Readonly<Record<Access, Caller>> = {
  full: { name: 'token', access: 'full' },
  read_only: { name: 'read-only token', access: 'read_only' },
};

interface Request {
  headers: IncomingHttpHeaders;
  ip: string;
}

/** Decides who is let in, before anything else looks at a request. */
export class Gate {
  /** The port that we listen at, known once we do. */
  port = 0;
  /** True while the daemon listens on loopback, where it answers to this machine's names alone. */
  listensOnLoopback = true;

  constructor(
    private readonly tokens: Tokens,
    private readonly throttle: Throttle,
  ) {}

  /** Refuses pages of other sites and, on loopback, every host that is not this machine. */
  admit(request: Pick<Request, 'headers'>): void {
    const needsLoopbackHost = this.listensOnLoopback || !this.tokens.areSet;
    checkOrigin(request.headers, { port: this.port, needsLoopbackHost });
  }

  identify({ headers, ip }: Request): Caller {
    if (!this.tokens.areSet) return anyone;
    const waitMs = this.throttle.waitMs(ip);
    if (waitMs > 0) {
      throw fail('TOO_MANY_ATTEMPTS', 'Too many wrong tokens came from your address: wait.', {
        retryAfterMs: waitMs,
      });
    }
    const sent = bearerToken(headers.authorization);
    if (sent === undefined) {
      throw fail(
        'UNAUTHENTICATED',
        'Send Authorization: Bearer with the token that `ctl daemon token show` prints.',
      );
    }
    const access = this.tokens.accessOf(sent);
    if (access) return holder[access];
    this.throttle.failed(ip);
    throw fail(
      'UNAUTHENTICATED',
      'The token is not known here; `ctl daemon token show` prints the right one.',
    );
  }
}

/** Refuses a caller who may only read and asks for more. */
export function checkAccess(caller: Caller, needed: 'read' | 'write'): void {
  if (caller.access === 'full' || needed === 'read') return;
  throw fail('FORBIDDEN', 'A read-only token may change nothing: use the other one.');
}
