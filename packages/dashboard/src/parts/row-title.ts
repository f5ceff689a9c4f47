import type { MouseEvent } from 'react';

const isCut = (element: Element): boolean => element.scrollWidth > element.clientWidth;

/**
 * Gives a row the tooltip of the cell under the pointer, or its text where that is cut off: a link
 * that covers the row would hide both.
 */
export function showRowTitle(event: MouseEvent<HTMLElement>): void {
  const row = (event.target as Element).closest<HTMLElement>('.vtable-row');
  if (!row) return;
  const cell = document
    .elementsFromPoint(event.clientX, event.clientY)
    .find((element) => element.getAttribute('role') === 'cell' && row.contains(element));
  const titled = cell?.querySelector('[title]');
  const cut = cell && [cell, ...cell.children].find(isCut);
  row.title = titled?.getAttribute('title') ?? cut?.textContent ?? '';
}
