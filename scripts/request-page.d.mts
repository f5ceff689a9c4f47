export function problemsOf(
  measured: Readonly<Record<string, readonly string[]>>,
  recorded: Readonly<Record<string, Readonly<Record<string, number>>>>,
  page: string,
): Promise<string[]>;
