import type { DaemonSchema } from '@millrace/contract/daemon';
import type { SavingsQuery } from '../savings/savings.js';
import type { DaemonContext } from './context.js';

/** What was kept out of models, and what the local model did in their place. */
export function getSavings(
  { savings }: DaemonContext,
  query: SavingsQuery,
): Promise<DaemonSchema<'SavingsReport'>> {
  return savings.report(query);
}
