import { tokenStore } from './token.js';

/** Exchanges the one-time code of a link `/#login=CODE` for a cookie, and clears the address. */
export async function logInByLink(): Promise<void> {
  const code = /^#login=([^&]+)$/.exec(location.hash)?.[1];
  if (code === undefined) return;
  // Before anything else: the code must not stay in the address or the history.
  history.replaceState(null, '', `${location.pathname}#/`);
  const response = await send('/api/v1/login', { code: decodeURIComponent(code) });
  if (response?.ok) tokenStore.loggedIn();
  else tokenStore.linkFailed();
}

/** Ends the login of this browser, and forgets a token that was typed. */
export async function logOut(): Promise<void> {
  await send('/api/v1/logout');
  tokenStore.clear();
  tokenStore.want(undefined);
}

/** Undefined when no answer came: the pages tell that by themselves. */
async function send(path: string, body?: object): Promise<Response | undefined> {
  const init = body && {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  try {
    return await fetch(path, { method: 'POST', ...init });
  } catch {
    return undefined;
  }
}
