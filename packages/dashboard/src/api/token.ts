/**
 * The bearer token: in sessionStorage, or in localStorage when the user chooses to stay logged in.
 * Never in the URL, which ends up in histories and logs.
 */
const name = 'millrace.token';

let token: string | undefined = readStored();
let isLoginRequired = false;
let hasLinkFailed = false;
const listeners = new Set<() => void>();

export const tokenStore = {
  current: (): string | undefined => token,
  /** Whether the daemon requires a token, or refused the current one. */
  isLoginRequired: (): boolean => isLoginRequired,
  /** Whether the page was opened with a login link that failed. */
  hasLinkFailed: (): boolean => hasLinkFailed,
  /** The browser has a login cookie now, so a stored token is obsolete. */
  loggedIn(): void {
    token = undefined;
    isLoginRequired = false;
    hasLinkFailed = false;
    deleteStored();
    notify();
  },
  linkFailed(): void {
    hasLinkFailed = true;
    notify();
  },
  set(value: string, { remember }: { remember: boolean }): void {
    token = value;
    isLoginRequired = false;
    deleteStored();
    (remember ? localStorage : sessionStorage).setItem(name, value);
    notify();
  },
  clear(): void {
    token = undefined;
    deleteStored();
    notify();
  },
  /** A request with this token returned 401. */
  requireLogin(usedToken: string | undefined): void {
    // The response to an older request says nothing about a token entered since.
    if (usedToken !== token || isLoginRequired) return;
    isLoginRequired = true;
    notify();
  },
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

function readStored(): string | undefined {
  return sessionStorage.getItem(name) ?? localStorage.getItem(name) ?? undefined;
}

function deleteStored(): void {
  sessionStorage.removeItem(name);
  localStorage.removeItem(name);
}

function notify(): void {
  for (const listener of listeners) listener();
}
