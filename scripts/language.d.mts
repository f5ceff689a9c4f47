export interface Violation {
  file: string;
  line: number;
  kind: string;
  text: string;
  prefer: string;
}

export function sourceFiles(paths?: readonly string[]): string[];
export function violationsIn(file: string, source: string): Violation[];
export function violations(paths?: readonly string[]): Violation[];
