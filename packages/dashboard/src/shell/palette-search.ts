export interface PaletteItem {
  id: string;
  /** `Queue`, `Agent`, `Page`. */
  kind: string;
  title: string;
  /** Additional text to search and show. */
  note?: string | undefined;
  run: () => void;
}

const maxShown = 50;
const ulid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i;

/** Whether the text is a task id. */
export const isTaskId = (text: string): boolean => ulid.test(text.trim());

/** Items that contain every word, those that start with the text first. */
export function searchItems(items: readonly PaletteItem[], text: string): PaletteItem[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return items.slice(0, maxShown);
  const words = wanted.split(/\s+/);
  const ranked = items.flatMap((item) => {
    const title = item.title.toLowerCase();
    const all = `${item.kind} ${title} ${item.note ?? ''}`.toLowerCase();
    if (!words.every((word) => all.includes(word))) return [];
    const rank = title.startsWith(wanted) ? 0 : title.includes(wanted) ? 1 : 2;
    return [{ item, rank }];
  });
  return ranked
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, maxShown)
    .map(({ item }) => item);
}
