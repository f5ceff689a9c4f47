import { useCallback, useState } from 'react';

/** Widths in pixels by column id, as a person has set them. */
export interface ColumnWidths {
  widths: Readonly<Record<string, number>>;
  /** Undefined returns to the width that the page gives it. */
  setWidth: (id: string, width: number | undefined) => void;
}

export const minWidth = 48;
export const maxWidth = 960;

/** Reads stored widths; anything else than numbers in range is dropped. */
export function widthsIn(text: string | null): Record<string, number> {
  let stored: unknown;
  try {
    stored = JSON.parse(text ?? '{}');
  } catch {
    return {};
  }
  if (typeof stored !== 'object' || stored === null) return {};
  const entries = Object.entries(stored as Record<string, unknown>).filter(
    (entry): entry is [string, number] =>
      typeof entry[1] === 'number' && entry[1] >= minWidth && entry[1] <= maxWidth,
  );
  return Object.fromEntries(entries);
}

/** Column widths of one table, stored in this browser. */
export function useColumnWidths(table: string): ColumnWidths {
  const storedName = `millrace.widths.${table}`;
  const [widths, setWidths] = useState(() => widthsIn(localStorage.getItem(storedName)));
  const setWidth = useCallback(
    (id: string, width: number | undefined) =>
      setWidths((before) => {
        const { [id]: _, ...rest } = before;
        const next =
          width === undefined
            ? rest
            : { ...rest, [id]: Math.round(Math.min(Math.max(width, minWidth), maxWidth)) };
        if (Object.keys(next).length === 0) localStorage.removeItem(storedName);
        else localStorage.setItem(storedName, JSON.stringify(next));
        return next;
      }),
    [storedName],
  );
  return { widths, setWidth };
}
