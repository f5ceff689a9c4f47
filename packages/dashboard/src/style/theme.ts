import { useSyncExternalStore } from 'react';
import { Store } from '../api/store.js';

export type Theme = 'auto' | 'light' | 'dark';
export type Density = 'comfortable' | 'compact';

const systemDark = window.matchMedia('(prefers-color-scheme: dark)');

/** A choice that this browser remembers, as an attribute of the document. */
class Appearance<Value extends string> extends Store<Value> {
  readonly #stored: string;

  constructor(
    readonly name: 'theme' | 'density',
    values: readonly [Value, ...Value[]],
  ) {
    const stored = localStorage.getItem(`millrace.${name}`);
    super(values.find((value) => value === stored) ?? values[0]);
    this.#stored = `millrace.${name}`;
  }

  override set(value: Value): void {
    localStorage.setItem(this.#stored, value);
    document.documentElement.dataset[this.name] = value;
    super.set(value);
  }

  apply(): void {
    document.documentElement.dataset[this.name] = this.value;
  }
}

export const theme = new Appearance<Theme>('theme', ['auto', 'light', 'dark']);
export const density = new Appearance<Density>('density', ['comfortable', 'compact']);

export const themeTexts = { auto: 'System', light: 'Light', dark: 'Dark' } as const;

/** Runs before the first paint, so that the page does not flash. */
export function startTheme(): void {
  theme.apply();
  density.apply();
}

const isSystemDark = () => systemDark.matches;

function subscribeSystem(listener: () => void): () => void {
  systemDark.addEventListener('change', listener);
  return () => systemDark.removeEventListener('change', listener);
}

/** Whether the effective theme is dark; for the canvas of charts. */
export function useIsDark(): boolean {
  const chosen = theme.use();
  const isSystem = useSyncExternalStore(subscribeSystem, isSystemDark);
  return chosen === 'auto' ? isSystem : chosen === 'dark';
}
