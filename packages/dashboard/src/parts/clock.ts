import { useSyncExternalStore } from 'react';

/** The only place where the dashboard reads the time. */
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
    for (const tell of listeners) tell();
  }, tickMs);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The time, anew every few seconds, the same for everything on the page. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => shown);
}
