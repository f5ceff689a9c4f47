import { useSyncExternalStore } from 'react';

/** The only place where the dashboard reads the clock. */
export const now = (): number => Date.now();

const tickMs = 5000;
let shown = now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  shown = now();
  timer ??= setInterval(() => {
    shown = now();
    for (const notify of listeners) notify();
  }, tickMs);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The current time, updated every few seconds for the whole page at once. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => shown);
}
