import type { IncomingHttpHeaders } from 'node:http';
import { bearerToken } from '@millrace/kit/tokens';
import { addressOf } from '@millrace/kit/config';
import { crossSiteHeader, shownHeader, type SameSiteRules } from '@millrace/kit/http';
import { fail, type Caller } from '../../core/api.js';
import { loginLifetimeMs, type Logins, type Throttle } from './logins.js';
import type { Access, Tokens } from './tokens.js';

export type { Caller };

/** Every caller but agents under `auth: none`, and callers of public operations. */
export const anyone: Caller = { name: 'anyone', access: 'full' };

const holder: Readonly<Record<Access, Caller>> = {
  full: { name: 'token', access: 'full' },
  read_only: { name: 'read-only token', access: 'read_only' },
};
const browser: Caller = { name: 'browser', access: 'full' };

interface Request {
  headers: IncomingHttpHeaders;
  ip: string;
}

export interface AuthenticatorParts {
  tokens: Tokens;
  throttle: Throttle;
  logins: Logins;
  /** The agent whose own token this is. */
  agentOf?: ((token: string) => Caller | undefined) | undefined;
  /** Only this machine can connect, so `Host` must name it; anything else is DNS rebinding. */
  isLoopback: boolean;
}

/** Authenticates requests by token or login cookie, and rejects requests of foreign web pages. */
export class Authenticator {
  /** The port of the listener; set once it is open. */
  port = 0;

  constructor(private readonly parts: AuthenticatorParts) {}

  /** Refuses pages of other sites and, on a loopback listener, every other host name. */
  admit(request: Pick<Request, 'headers'>): void {
    const needsLoopbackHost = this.parts.isLoopback;
    checkOrigin(request.headers, { port: this.port, needsLoopbackHost });
  }

  identify({ headers, ip }: Request): Caller {
    const { tokens } = this.parts;
    if (!tokens.areRequired && headers.authorization === undefined) return anyone;
    const sent = bearerToken(headers.authorization);
    const access = sent !== undefined && tokens.areRequired ? tokens.accessOf(sent) : undefined;
    if (access) return holder[access];
    // An agent is itself also where it needs no token.
    const agent = sent === undefined ? undefined : this.parts.agentOf?.(sent);
    if (agent) return agent;
    if (!tokens.areRequired) return anyone;
    if (this.#isLoggedIn(headers)) return browser;
    if (sent === undefined) {
      throw fail(
        'UNAUTHENTICATED',
        'Send Authorization: Bearer with the token that `ctl daemon token show` prints, ' +
          'or log a browser in with `ctl open`.',
      );
    }
    this.#countFailure(ip);
    throw fail(
      'UNAUTHENTICATED',
      'The token is not valid. `ctl daemon token show` prints the valid one.',
    );
  }

  /** Creates a one-time code that logs one browser in. */
  newCode(): { code: string; expiresAt: number } {
    return this.parts.logins.newCode();
  }

  /** Exchanges a code for the cookie of a login. */
  logIn(code: string, { headers, ip }: Request): { setCookie: string; expiresAt: number } {
    const login = this.parts.logins.redeem(code);
    if (!login) {
      this.#countFailure(ip);
      throw fail(
        'UNAUTHENTICATED',
        'The login link was used already or is older than 5 minutes. Get a new one with `ctl open`.',
      );
    }
    const { secret: value, expiresAt } = login;
    const isSecure = headers.origin?.startsWith('https:') ?? false;
    const cookie = { name: this.#cookieName, value, maxAgeMs: loginLifetimeMs, isSecure };
    return { setCookie: cookieHeader(cookie), expiresAt };
  }

  /** Ends the login of this browser, if it has one, and returns the cookie that removes it. */
  logOut({ headers }: Pick<Request, 'headers'>): { setCookie: string } {
    const secret = cookieValue(headers.cookie, this.#cookieName);
    if (secret !== undefined) this.parts.logins.end(secret);
    const isSecure = headers.origin?.startsWith('https:') ?? false;
    const cookie = { name: this.#cookieName, value: '', maxAgeMs: 0, isSecure };
    return { setCookie: cookieHeader(cookie) };
  }

  /** Browsers send cookies to every port of a host, so the port is part of the name. */
  get #cookieName(): string {
    return `millrace_login_${this.port}`;
  }

  #isLoggedIn(headers: IncomingHttpHeaders): boolean {
    const secret = cookieValue(headers.cookie, this.#cookieName);
    if (secret === undefined || !this.parts.logins.has(secret)) return false;
    // A browser also sends the cookie for pages of other ports of this host, unlike a token.
    if (headers['sec-fetch-site'] === 'same-site') {
      throw fail('FORBIDDEN', 'Pages of other sites may not call this daemon.');
    }
    return true;
  }

  /** Throttles wrong secrets only, so that guessing never locks out a caller with the right one. */
  #countFailure(ip: string): void {
    const { throttle } = this.parts;
    const waitMs = throttle.waitMs(ip);
    if (waitMs > 0) {
      throw fail('TOO_MANY_ATTEMPTS', 'Too many wrong tokens came from your address. Try later.', {
        retryAfterMs: waitMs,
      });
    }
    throttle.failed(ip);
  }
}

/** Refuses writes by a caller who may only read. */
export function checkAccess(caller: Caller, needed: 'read' | 'write'): void {
  if (caller.access === 'full' || needed === 'read') return;
  throw fail('FORBIDDEN', 'The read-only token cannot change anything. Use the full token.');
}

/**
 * Any page in a local browser can send requests to the daemon, and callers of the daemon can run
 * programs. So requests of other sites' pages are refused.
 */
export function checkOrigin(headers: IncomingHttpHeaders, rules: SameSiteRules): void {
  const foreign = crossSiteHeader(headers, rules);
  if (foreign === undefined) return;
  const { header, value } = foreign;
  if (header === 'Host') {
    throw fail(
      'FORBIDDEN',
      `The Host header ${shownHeader(value)} does not name this machine. A daemon on loopback ` +
        'accepts loopback names only; configure a reverse proxy to send Host: localhost.',
    );
  }
  const pages = header === 'Origin' ? `of ${shownHeader(value)}` : 'of other sites';
  throw fail('FORBIDDEN', `Pages ${pages} may not call this daemon.`);
}

/** The port of an address such as `http://127.0.0.1:8765`. */
export function portOf(url: string): number {
  return addressOf(url.replace(/^https?:\/\//, '')).port;
}

export function cookieValue(header: string | undefined, name: string): string | undefined {
  const pair = header
    ?.split(';')
    .map((each) => each.trim())
    .find((each) => each.startsWith(`${name}=`));
  return pair?.slice(name.length + 1) || undefined;
}

interface LoginCookie {
  name: string;
  value: string;
  maxAgeMs: number;
  /** Whether the page came over HTTPS; a browser drops a `Secure` cookie otherwise. */
  isSecure: boolean;
}

export function cookieHeader({ name, value, maxAgeMs, isSecure }: LoginCookie): string {
  const maxAge = Math.floor(maxAgeMs / 1000);
  const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`;
  return `${name}=${value}; ${attributes}${isSecure ? '; Secure' : ''}`;
}
