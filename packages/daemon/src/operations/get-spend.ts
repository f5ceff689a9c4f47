import type { DaemonSchema } from '@millrace/contract/daemon';
import { fail } from '../core/refusals.js';
import type { DaemonContext } from './context.js';

/** What the agents have spent, by their own transcripts. */
export async function getSpend({ spend }: DaemonContext): Promise<DaemonSchema<'SpendRollup'>> {
  if (spend) return spend.read();
  throw fail(
    'SAVINGS_DISABLED',
    'The setting savings is off. Set savings to true and start the daemon again.',
  );
}
