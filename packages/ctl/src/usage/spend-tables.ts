/** Tables that `--by` selects, with their names in the rollup. */
export const spendTables = {
  agent: 'by_agent',
  repo: 'by_repo',
  day: 'by_day',
  hour: 'by_hour',
  model: 'by_model',
  backend: 'by_backend',
  branch: 'by_branch',
  task: 'by_task',
} as const;

export type SpendBy = keyof typeof spendTables;
