import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Starts a pipeline, resumes a paused one, or retries the failed jobs of a stalled one. */
export function startPipeline(
  { pipelines }: Pick<DaemonContext, 'pipelines'>,
  id: string,
): Promise<DaemonSchema<'Pipeline'>> {
  return pipelines.start(id);
}
