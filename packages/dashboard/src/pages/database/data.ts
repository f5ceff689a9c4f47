/** Formats the data of a record for editing. */
export const dataText = (data: unknown): string => JSON.stringify(data, undefined, 2);

/** Parses the text of a record, or says what is wrong with it. */
export function readData(text: string): { data: object } | { error: string } {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    return { error: `Invalid JSON: ${(error as Error).message}` };
  }
  if (typeof data === 'object' && data !== null && !Array.isArray(data)) return { data };
  return { error: 'A record must be a JSON object: { ... }.' };
}

/** Names of the top-level fields that differ. */
export function differing(theirs: Readonly<Record<string, unknown>>, text: string): string[] {
  const read = readData(text);
  if ('error' in read) return [];
  const mine = read.data as Readonly<Record<string, unknown>>;
  return [...new Set([...Object.keys(theirs), ...Object.keys(mine)])].filter(
    (name) => JSON.stringify(theirs[name]) !== JSON.stringify(mine[name]),
  );
}
