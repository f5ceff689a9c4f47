import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { Caller, Authenticator } from './access/authenticator.js';

type LoginOperations = Pick<DaemonOperations, 'createLoginCode' | 'logIn' | 'logOut'>;

/** Browser login: a one-time code for the token holder, exchanged for a cookie. */
export function loginHandlers(
  authenticator: Pick<Authenticator, 'newCode' | 'logIn' | 'logOut'>,
): Handlers<LoginOperations, Caller> {
  return {
    createLoginCode: () => {
      const { code, expiresAt } = authenticator.newCode();
      return { status: 200, body: { code, expires_at: timeText(expiresAt) } };
    },
    logIn: ({ body, exchange: { headers, ip } }) => {
      const { setCookie, expiresAt } = authenticator.logIn(body.code, { headers, ip });
      return {
        status: 200,
        body: { logged_in: true, expires_at: timeText(expiresAt) },
        headers: { 'set-cookie': setCookie },
      };
    },
    logOut: ({ exchange: { headers } }) => ({
      status: 200,
      body: { logged_in: false, expires_at: null },
      headers: { 'set-cookie': authenticator.logOut({ headers }).setCookie },
    }),
  };
}

function timeText(time: number): string {
  return new Date(time).toISOString();
}
