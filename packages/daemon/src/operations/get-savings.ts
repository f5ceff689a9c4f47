import type { DaemonSchema } from '@millrace/contract/daemon';
import type { SavingsAsk } from '../savings/savings.js';
import type { DaemonContext } from './context.js';

/** What was kept out of models, and what the local model did in their place. */
export function getSavings(
  { savings }: DaemonContext,
  ask: SavingsAsk,
): Promise<DaemonSchema<'SavingsReport'>> {
  return savings.report(ask);
}
