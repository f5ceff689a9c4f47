import type { DaemonSchema } from '@millrace/contract/daemon';
import type { SavingsQuery } from '../savings/savings.js';
import type { DaemonContext } from './context.js';

/** Tokens saved, and work that the local model did in place of a cloud model. */
export function getSavings(
  { savings }: DaemonContext,
  query: SavingsQuery,
): Promise<DaemonSchema<'SavingsReport'>> {
  return savings.report(query);
}
