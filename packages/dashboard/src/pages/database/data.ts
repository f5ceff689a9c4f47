/** The body of a record as people edit it. */
export const dataText = (data: unknown): string => JSON.stringify(data, undefined, 2);

/** The object that a text stands for, or what is wrong with it. */
export function readData(text: string): { data: object } | { error: string } {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}` };
  }
  if (typeof data === 'object' && data !== null && !Array.isArray(data)) return { data };
  return { error: 'A record is an object: put it in { }.' };
}

/** The names of the fields, at the top, in which the two differ. */
export function differing(theirs: Readonly<Record<string, unknown>>, text: string): string[] {
  const read = readData(text);
  if ('error' in read) return [];
  const mine = read.data as Readonly<Record<string, unknown>>;
  return [...new Set([...Object.keys(theirs), ...Object.keys(mine)])].filter(
    (name) => JSON.stringify(theirs[name]) !== JSON.stringify(mine[name]),
  );
}
