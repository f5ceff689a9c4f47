import type { DaemonOperations } from '@millrace/contract/daemon';
import type { Handlers } from '@millrace/kit/http';
import type { Caller, Gate } from './access/gate.js';

type LoginOperations = Pick<DaemonOperations, 'createLoginCode' | 'logIn' | 'logOut'>;

/** Login of browsers: a code for whoever has the token, exchanged for a cookie. */
export function loginHandlers(
  gate: Pick<Gate, 'newCode' | 'logIn' | 'logOut'>,
): Handlers<LoginOperations, Caller> {
  return {
    createLoginCode: () => {
      const { code, expiresAt } = gate.newCode();
      return { status: 200, body: { code, expires_at: timeText(expiresAt) } };
    },
    logIn: ({ body, exchange: { headers, ip } }) => {
      const { setCookie, expiresAt } = gate.logIn(body.code, { headers, ip });
      return {
        status: 200,
        body: { logged_in: true, expires_at: timeText(expiresAt) },
        headers: { 'set-cookie': setCookie },
      };
    },
    logOut: ({ exchange: { headers } }) => ({
      status: 200,
      body: { logged_in: false, expires_at: null },
      headers: { 'set-cookie': gate.logOut({ headers }).setCookie },
    }),
  };
}

function timeText(time: number): string {
  return new Date(time).toISOString();
}
