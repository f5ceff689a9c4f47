import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Stops the running jobs of a pipeline and skips the pending ones. */
export function cancelPipeline(
  { pipelines }: Pick<DaemonContext, 'pipelines'>,
  id: string,
): Promise<DaemonSchema<'Pipeline'>> {
  return pipelines.cancel(id);
}
