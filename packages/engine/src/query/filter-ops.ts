/** Separate from the filter compiler, so that clients check names without loading it. */
export const filterOps = [
  'eq',
  'ne',
  'gt',
  'gte',
  'lt',
  'lte',
  'in',
  'nin',
  'exists',
  'contains',
  'prefix',
  'regex',
  'between',
] as const;
export type FilterOp = (typeof filterOps)[number];
