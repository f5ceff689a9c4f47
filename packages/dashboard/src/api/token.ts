/**
 * The bearer token, where the browser keeps it: for this tab alone, or on this computer when the
 * person asks for that. Never in the address, where history and logs would see it.
 */
const name = 'millrace.token';

let token: string | undefined = readStored();
let isWanted = false;
let hasLinkFailed = false;
const listeners = new Set<() => void>();

export const tokenStore = {
  current: (): string | undefined => token,
  /** Whether a server has asked for a token, or refused the one there is. */
  isWanted: (): boolean => isWanted,
  /** Whether the page was opened by a login link that did not work. */
  hasLinkFailed: (): boolean => hasLinkFailed,
  /** The browser has a login cookie, so a token that was refused before is of no use. */
  loggedIn(): void {
    token = undefined;
    isWanted = false;
    hasLinkFailed = false;
    forget();
    tell();
  },
  linkFailed(): void {
    hasLinkFailed = true;
    tell();
  },
  set(value: string, { keep }: { keep: boolean }): void {
    token = value;
    isWanted = false;
    forget();
    (keep ? localStorage : sessionStorage).setItem(name, value);
    tell();
  },
  clear(): void {
    token = undefined;
    forget();
    tell();
  },
  /** A server said 401. */
  want(refused: string | undefined): void {
    // An answer to an older request says nothing about a token that was given since.
    if (refused !== token || isWanted) return;
    isWanted = true;
    tell();
  },
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

function readStored(): string | undefined {
  return sessionStorage.getItem(name) ?? localStorage.getItem(name) ?? undefined;
}

function forget(): void {
  sessionStorage.removeItem(name);
  localStorage.removeItem(name);
}

function tell(): void {
  for (const listener of listeners) listener();
}
