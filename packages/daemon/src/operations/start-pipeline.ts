import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Starts a pipeline, lets a paused one go on, or runs again what failed in a stalled one. */
export function startPipeline(
  { pipelines }: Pick<DaemonContext, 'pipelines'>,
  id: string,
): Promise<DaemonSchema<'Pipeline'>> {
  return pipelines.start(id);
}
