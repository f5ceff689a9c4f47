/** Tables that `--by` selects, with their names in the rollup. */
export const spendTables = { agent: 'by_agent', repo: 'by_repo', day: 'by_day' } as const;

export type SpendBy = keyof typeof spendTables;
