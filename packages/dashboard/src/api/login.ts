import { createDaemonClient } from '@millrace/client';
import { tokenStore } from './token.js';

// Without a token: login and logout need none, and a refused code says nothing about the token.
const daemon = createDaemonClient({ url: location.origin });

/** Exchanges the one-time code of a link `/#login=CODE` for a cookie, and clears the address. */
export async function logInByLink(): Promise<void> {
  const code = /^#login=([^&]+)$/.exec(location.hash)?.[1];
  if (code === undefined) return;
  // Before anything else: the code must not stay in the address or the history.
  history.replaceState(null, '', `${location.pathname}#/`);
  try {
    await daemon.call('logIn', { body: { code: decodeURIComponent(code) } });
    tokenStore.loggedIn();
  } catch {
    // The login page shows the failure.
    tokenStore.linkFailed();
  }
}

/** Ends the login of this browser and deletes a stored token. */
export async function logOut(): Promise<void> {
  try {
    await daemon.call('logOut');
  } catch {
    // An unreachable daemon shows on every page; the token is deleted all the same.
  }
  tokenStore.clear();
  tokenStore.requireLogin(undefined);
}
