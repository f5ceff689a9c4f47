export type Shapes = Record<'transcript' | 'output', Record<string, string[]>> &
  Record<'flags' | 'marks', string[]>;

export const reads: Record<string, string[]>;
export function shapesOf(records: readonly object[]): Record<string, string[]>;
export function flagsIn(text: string): string[];
export function differences(before: Partial<Shapes>, after: Partial<Shapes>): string[];
export function broken(lines: readonly string[], used: readonly string[]): string[];
export function recorded(): Record<string, Record<string, Shapes>>;
export function changes(
  all?: Record<string, Record<string, Partial<Shapes>>>,
): { name: string; from: string; to: string; lines: string[] }[];
