import { useSyncExternalStore } from 'react';

export type Theme = 'auto' | 'light' | 'dark';

const storedName = 'millrace.theme';
const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();
let theme: Theme = read();

function read(): Theme {
  const stored = localStorage.getItem(storedName);
  return stored === 'light' || stored === 'dark' ? stored : 'auto';
}

function apply(): void {
  document.documentElement.dataset['theme'] = theme;
  for (const listener of listeners) listener();
}

/** Runs before the first paint, so that the page does not flash. */
export function startTheme(): void {
  systemDark.addEventListener('change', apply);
  apply();
}

export function setTheme(next: Theme): void {
  theme = next;
  localStorage.setItem(storedName, next);
  apply();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, () => theme);
}

/** Whether the effective theme is dark; for the canvas of charts. */
export function useIsDark(): boolean {
  return useSyncExternalStore(subscribe, () =>
    theme === 'auto' ? systemDark.matches : theme === 'dark',
  );
}
