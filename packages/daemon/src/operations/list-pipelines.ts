import type { DaemonSchema } from '@millrace/contract/daemon';
import type { DaemonContext } from './context.js';

/** Every pipeline with its jobs, newest first. */
export async function listPipelines({
  pipelines,
}: Pick<DaemonContext, 'pipelines'>): Promise<DaemonSchema<'PipelineList'>> {
  return { pipelines: await pipelines.list() };
}
