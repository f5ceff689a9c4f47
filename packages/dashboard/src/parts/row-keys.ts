import { useEffect, useRef, type RefObject } from 'react';
import { useShortcut } from './shortcuts.js';

/** Moves the focus from row to row with j and k; Enter then follows the focused link itself. */
export function useRowKeys(
  scroller: RefObject<HTMLElement | null>,
  rowCount: number,
  scrollTo: (index: number) => void,
): void {
  const wanted = useRef<number | undefined>(undefined);
  const move = (step: number) => {
    const at = focusedRow(scroller.current);
    const next = at === undefined ? 0 : Math.min(Math.max(at + step, 0), rowCount - 1);
    if (rowCount === 0) return;
    scrollTo(next);
    wanted.current = next;
    focusRow(scroller.current, next);
  };
  // The row may not be drawn yet when it is asked for.
  useEffect(() => {
    const index = wanted.current;
    if (index !== undefined && focusRow(scroller.current, index)) wanted.current = undefined;
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
