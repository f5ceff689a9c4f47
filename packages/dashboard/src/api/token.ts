import { Store } from './store.js';

/**
 * The bearer token: in sessionStorage, or in localStorage when the user chooses to stay logged in.
 * Never in the URL, which ends up in histories and logs.
 */
const name = 'millrace.token';

interface Login {
  token: string | undefined;
  /** Whether the daemon requires a token, or refused the current one. */
  isRequired: boolean;
  /** Whether the page was opened with a login link that failed. */
  hasLinkFailed: boolean;
}

const stored = sessionStorage.getItem(name) ?? localStorage.getItem(name) ?? undefined;
const store = new Store<Login>({ token: stored, isRequired: false, hasLinkFailed: false });
const change = (next: Partial<Login>) => store.set({ ...store.value, ...next });

function deleteStored(): void {
  sessionStorage.removeItem(name);
  localStorage.removeItem(name);
}

export const tokenStore = {
  subscribe: store.subscribe,
  current: (): string | undefined => store.value.token,
  isLoginRequired: (): boolean => store.value.isRequired,
  hasLinkFailed: (): boolean => store.value.hasLinkFailed,
  /** The browser has a login cookie now, so a stored token is obsolete. */
  loggedIn(): void {
    deleteStored();
    change({ token: undefined, isRequired: false, hasLinkFailed: false });
  },
  linkFailed: (): void => change({ hasLinkFailed: true }),
  set(token: string, { remember }: { remember: boolean }): void {
    deleteStored();
    (remember ? localStorage : sessionStorage).setItem(name, token);
    change({ token, isRequired: false });
  },
  clear(): void {
    deleteStored();
    change({ token: undefined });
  },
  /** A request with this token returned 401. */
  requireLogin(usedToken: string | undefined): void {
    // The response to an older request says nothing about a token entered since.
    const { token, isRequired } = store.value;
    if (usedToken === token && !isRequired) change({ isRequired: true });
  },
};
