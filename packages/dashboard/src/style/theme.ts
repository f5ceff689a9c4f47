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

export type Density = 'comfortable' | 'compact';

const densityName = 'millrace.density';
let density: Density = localStorage.getItem(densityName) === 'compact' ? 'compact' : 'comfortable';

function apply(): void {
  document.documentElement.dataset['theme'] = theme;
  document.documentElement.dataset['density'] = density;
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

export function setDensity(next: Density): void {
  density = next;
  localStorage.setItem(densityName, next);
  apply();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, () => theme);
}

export function useDensity(): Density {
  return useSyncExternalStore(subscribe, () => density);
}

/** Whether the effective theme is dark; for the canvas of charts. */
export function useIsDark(): boolean {
  return useSyncExternalStore(subscribe, () =>
    theme === 'auto' ? systemDark.matches : theme === 'dark',
  );
}
