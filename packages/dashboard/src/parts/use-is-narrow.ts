import { useSyncExternalStore } from 'react';

const query = window.matchMedia('(max-width: 719px)');

function subscribe(listener: () => void): () => void {
  query.addEventListener('change', listener);
  return () => query.removeEventListener('change', listener);
}

/** Whether the page is as narrow as a phone; the breakpoint of base.css. */
export function useIsNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => query.matches);
}
