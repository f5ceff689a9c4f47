import { useCallback, useSyncExternalStore } from 'react';

/**
 * The location is the URL fragment with parameters of its own: `#/queues/mail?status=DEAD`. Every
 * filter, tab and record is a parameter, so that an address can be shared and Back works.
 */
const current = (): string => `/${location.hash.replace(/^#?\/?/, '')}`;

function subscribe(listener: () => void): () => void {
  addEventListener('hashchange', listener);
  return () => removeEventListener('hashchange', listener);
}

export interface NavigateOptions {
  /** Replaces the entry of the history instead of adding one. */
  replace?: boolean;
}

export function navigate(to: string, { replace = false }: NavigateOptions = {}): void {
  const url = new URL(location.href);
  url.hash = to;
  if (url.href === location.href) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', url.href);
  // The browser reports a changed fragment only when a person or Back changes it.
  dispatchEvent(new Event('hashchange'));
}

export const pathOf = (place: string): string => place.split('?', 1)[0]!;

/** The path, for the router. */
export function usePath(): [string, typeof navigate] {
  return [useSyncExternalStore(subscribe, () => pathOf(current())), navigate];
}

usePath.hrefs = (href: string): string => `#${href}`;

const queryOf = (place: string): string => place.slice(pathOf(place).length + 1);

/** All parameters; the text is stable while nothing changes. */
export function useParamText(): string {
  return useSyncExternalStore(subscribe, () => queryOf(current()));
}

/** Parameters to set; empty and undefined remove one, a list repeats it. */
export type ParamChanges = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The parameters with some changed. */
export function withParams(text: string, changes: ParamChanges): string {
  const params = new URLSearchParams(text);
  for (const [name, value] of Object.entries(changes)) {
    params.delete(name);
    const values = typeof value === 'string' ? [value] : (value ?? []);
    for (const one of values) if (one !== '') params.append(name, one);
  }
  return params.toString();
}

/** Changes parameters of the current page. */
export function setParams(changes: ParamChanges, options?: NavigateOptions): void {
  const text = withParams(queryOf(current()), changes);
  navigate(pathOf(current()) + (text === '' ? '' : `?${text}`), options);
}

/** One parameter as state: a choice that Back undoes. The fallback is not written. */
export function useParam<Value extends string>(
  name: string,
  fallback: Value,
  allowed?: readonly Value[],
): [Value, (value: Value) => void] {
  const found = new URLSearchParams(useParamText()).get(name) as Value | null;
  const value = found === null || (allowed && !allowed.includes(found)) ? fallback : found;
  const set = useCallback(
    (next: Value) => setParams({ [name]: next === fallback ? '' : next }),
    [name, fallback],
  );
  return [value, set];
}

/** What is open, such as a task or a record; empty when nothing is. */
export const useIdParam = (name: string): [string, (value: string) => void] =>
  useParam<string>(name, '');

/** A text that is typed: every letter changes the address, but not the history. */
export function useTextParam(name: string): [string, (value: string) => void] {
  const value = new URLSearchParams(useParamText()).get(name) ?? '';
  const set = useCallback((next: string) => setParams({ [name]: next }, { replace: true }), [name]);
  return [value, set];
}
