import { useEffect, useRef, type RefObject } from 'react';
import { useShortcut } from './shortcuts.js';

/** Moves the focus between rows with j and k; Enter follows the focused link. */
export function useRowKeys(
  scroller: RefObject<HTMLElement | null>,
  rowCount: number,
  scrollTo: (index: number) => void,
): void {
  const pending = useRef<number | undefined>(undefined);
  const move = (step: number) => {
    const at = focusedRow(scroller.current);
    const next = at === undefined ? 0 : Math.min(Math.max(at + step, 0), rowCount - 1);
    if (rowCount === 0) return;
    scrollTo(next);
    pending.current = next;
    focusRow(scroller.current, next);
  };
  // The row may not be rendered yet, so the focus is set after the next render.
  useEffect(() => {
    const index = pending.current;
    if (index !== undefined && focusRow(scroller.current, index)) pending.current = undefined;
  });
  useShortcut('j', 'Next row', () => move(1));
  useShortcut('k', 'Previous row', () => move(-1));
}

function focusedRow(scroller: HTMLElement | null): number | undefined {
  const row = document.activeElement?.closest<HTMLElement>('[data-index]');
  return row && scroller?.contains(row) ? Number(row.dataset['index']) : undefined;
}

function focusRow(scroller: HTMLElement | null, index: number): boolean {
  const row = scroller?.querySelector(`[data-index="${index}"]`);
  const target = row?.querySelector<HTMLElement>('a, button');
  target?.focus({ preventScroll: true });
  return target !== null && target !== undefined;
}
