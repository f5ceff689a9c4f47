interface Problem {
  agent_id: string;
  error: string | null;
}

/** Errors of more than one branch: said once above the table, not in each row. */
export function sharedErrors(branches: readonly Problem[]): { error: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const { error } of branches) {
    if (error !== null) counts.set(error, (counts.get(error) ?? 0) + 1);
  }
  return [...counts].flatMap(([error, count]) => (count > 1 ? [{ error, count }] : []));
}
