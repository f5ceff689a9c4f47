export const layers: Readonly<
  Record<string, { order: readonly (readonly string[])[]; apart?: readonly string[] }>
>;
export function shownOrder(folder: string): string;
